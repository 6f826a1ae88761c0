"""How the present code is called and where its arrays lie, which is as in 0.3, and which bytes it promises."""

from collections.abc import Mapping
from typing import Any

from golden.read_0_3 import call, read
from golden.ways import Way

__all__ = ["CHANGED_SINCE", "call", "must_equal", "read"]
CHANGED_SINCE: Mapping[str, tuple[str, ...]] = {"als": ("0.1", "0.2")}
"""Models that were revised, and the releases with other numbers: ALS sums over slots, in their order, since 0.3."""


def must_equal(version: str, way: Way, facts: Mapping[str, Any], step: str) -> bool:
    """Say whether the bytes of a way after a step are promised to be those of an earlier version.

    Those of a model that was revised since are not, and all others of 0.2 and later are. 0.1 froze the items of the
    data; now they follow the people. That changes nothing where the catalogue is declared, or where every stage knows
    every item anyway. An item that came later stood behind all others in 0.1, however it is called; now it stands where
    its id belongs.
    """
    if version in CHANGED_SINCE.get(way.model, ()):
        return False
    if version != "0.1":
        return True
    came_later = step in ("learn more", "forget items")
    return facts["catalogue"] == "declared" or (bool(facts["every group has every item"]) and not came_later)
