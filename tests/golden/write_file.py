"""What `scripts/golden VERSION` runs: makes the digests of a version from its commit, for this environment."""

import sys
from pathlib import Path

from golden.digests import differences
from golden.environment import environment
from golden.making import ADAPTERS, FILES, NoHistory, file_for, kept_ways, made_from_history, write
from golden.ways import WAYS


def main(words: list[str], files: Path = FILES) -> None:
    """Write the file of a version, or add to it the ways that are new; digests that it holds never change."""
    if len(words) != 1 or words[0] not in ADAPTERS:
        sys.exit(f"usage: scripts/golden VERSION, where VERSION is one of {', '.join(ADAPTERS)}")
    version = words[0]
    path = file_for(version, environment(), files)
    kept = kept_ways(path, version) if path else {}
    try:
        made = made_from_history(version, list(WAYS))
    except NoHistory as error:
        sys.exit(str(error))
    changed = [f"{name}: {line}" for name in kept.keys() & made for line in differences(kept[name], made[name])]
    if changed:
        sys.exit("\n".join([f"{path} holds other digests, so nothing was written:", *sorted(changed)[:20]]))
    print(write(version, {**kept, **made}, files))


if __name__ == "__main__":
    main(sys.argv[1:])
