"""What adapters share: how the command is called, and the arrays of a checkpoint by kind and name."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from erasable.cli.main import main
from golden.reading import Kind, Trained

KINDS: Mapping[str, Kind] = {"shared": "shared", "rows": "user rows"}
"""What a tensor is, by the first word of its name; the rest is its name in the chain."""


def call(words: Sequence[str]) -> None:
    """Run the command in this process, and raise if it does not end well."""
    before, sys.argv = sys.argv, ["erasable", *words]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"erasable {' '.join(words)} ended with {end.code}") from end
    finally:
        sys.argv = before


def trained(arrays: Mapping[str, Any], position: int) -> list[Trained]:
    """Return the arrays of a checkpoint, by kind and name."""
    named = sorted((*name.split(".", 1), array) for name, array in arrays.items())
    return [Trained(position, KINDS[kind], name, array) for kind, name, array in named]
