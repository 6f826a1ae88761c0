"""Runs ways with the version that is first on the path, in a process of its own: see `golden.making.run`.

python -P -m golden.run_ways ADAPTER SOURCE OUTPUT WAY...

A way whose name begins with `frozen:` is run with the items declared that 0.1 froze.
"""

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from golden.digests import make
from golden.ways import FROZEN, UNRELEASED, WAYS

IS_FROZEN = "frozen:"
EVERY = {**WAYS, **UNRELEASED}


def main(adapter_name: str, source: str, output: str, names: Sequence[str]) -> None:
    """Make the digests of some ways, and write them as JSON."""
    adapter = importlib.import_module(adapter_name)
    package = Path(str(sys.modules["erasable"].__file__)).resolve()
    if not package.is_relative_to(Path(source).resolve()):
        raise RuntimeError(f"{package} was imported instead of what lies in {source}")
    made = {}
    for name in names:
        with TemporaryDirectory(dir=Path(output).parent) as folder:
            way = FROZEN[name.removeprefix(IS_FROZEN)] if name.startswith(IS_FROZEN) else EVERY[name]
            made[name] = make(way, adapter, Path(folder))
    Path(output).write_text(json.dumps(made), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:4], sys.argv[4:])
