"""Check that a wheel holds every file of the package, and nothing else: `wheel_contents.py FILE.whl`."""

import sys
import zipfile
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
MUST_BE_THERE = ("erasable/py.typed", "erasable/__main__.py")


def expected() -> set[str]:
    """Return the files of the package, without what Python and tools leave there."""
    files = (path for path in (SOURCE / "erasable").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(SOURCE).as_posix() for path in files}


def main() -> None:
    """Compare, and end with 1 where they differ."""
    names = {name for name in zipfile.ZipFile(sys.argv[1]).namelist() if ".dist-info/" not in name}
    missing, extra = (expected() | set(MUST_BE_THERE)) - names, names - expected()
    if missing or extra:
        sys.exit(f"missing from the wheel: {sorted(missing)}; too much in it: {sorted(extra)}")
    kinds = sorted({Path(name).suffix for name in names})
    print(f"{len(names)} files, py.typed among them, of kinds {', '.join(kinds)}")


if __name__ == "__main__":
    main()
