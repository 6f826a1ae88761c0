"""What `scripts/golden VERSION` runs: makes the digests of a version from its commit, for this environment.

For `unreleased` they are made with the present code, of the ways that no release has.
"""

import sys
from pathlib import Path

from golden.digests import differences
from golden.environment import environment
from golden.making import (
    ADAPTERS,
    FILES,
    UNRELEASED,
    NoHistory,
    file_for,
    kept_ways,
    made_from_history,
    made_here,
    write,
)
from golden.ways import UNRELEASED as FURTHER
from golden.ways import ways_of


def main(words: list[str], files: Path = FILES) -> None:
    """Write the file of a version, or add to it the ways that are new; digests that it holds never change."""
    if len(words) != 1 or words[0] not in (*ADAPTERS, UNRELEASED):
        sys.exit(f"usage: scripts/golden VERSION, where VERSION is one of {', '.join((*ADAPTERS, UNRELEASED))}")
    version = words[0]
    path = file_for(version, environment(), files)
    kept = kept_ways(path, version) if path else {}
    try:
        made = made_here(list(FURTHER)) if version == UNRELEASED else made_from_history(version, ways_of(version))
    except NoHistory as error:
        sys.exit(str(error))
    changed = [f"{name}: {line}" for name in kept.keys() & made for line in differences(kept[name], made[name])]
    if changed:
        sys.exit("\n".join([f"{path} holds other digests, so nothing was written:", *sorted(changed)[:20]]))
    print(write(version, {**kept, **made}, files))


if __name__ == "__main__":
    main(sys.argv[1:])
