"""What `scripts/golden VERSION` runs: makes the digests of a version from its commit, for this environment."""

import sys

from golden.digests import differences
from golden.environment import environment
from golden.making import ADAPTERS, NoHistory, file_for, kept_ways, made_from_history, write
from golden.ways import WAYS


def main(words: list[str]) -> None:
    """Write the file of a version, or add to it the ways that are new; digests that it holds never change."""
    if len(words) != 1 or words[0] not in ADAPTERS:
        sys.exit(f"usage: scripts/golden VERSION, where VERSION is one of {', '.join(ADAPTERS)}")
    version = words[0]
    path = file_for(version, environment())
    kept = kept_ways(path, version) if path else {}
    try:
        made = made_from_history(version, list(WAYS))
    except NoHistory as error:
        sys.exit(str(error))
    changed = [f"{name}: {line}" for name, way in kept.items() for line in differences(way, made[name])]
    if changed:
        sys.exit("\n".join([f"{path} holds other digests, so nothing was written:", *changed[:20]]))
    print(write(version, made))


if __name__ == "__main__":
    main(sys.argv[1:])
