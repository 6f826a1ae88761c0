"""How the present code is called, and where its arrays lie: solved rows are in no file, and are solved to be read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from erasable.chain import Dataset, Scoring
from erasable.chain.buckets import Place
from erasable.workspace import Workspace
from golden import read_any
from golden.read_any import trained
from golden.reading import Reading
from golden.ways import Way


def call(words: Sequence[str]) -> None:
    """Run the command; whoever is trained at once has no groupings any more, and says the policy alone.

    0.1's EASE had all items as neighbours, which is said now.
    """
    at_once = {"als", "ease", "retrain"}.intersection(words)
    of_all = ["--neighbours", "all"] if "ease" in words and "--neighbours" not in words else []
    read_any.call([*(_without("--grouping", words) if at_once else words), *of_all])


def _without(option: str, words: Sequence[str]) -> list[str]:
    """Leave out an option with its value."""
    place = list(words).index(option) if option in words else len(words)
    return [*words[:place], *words[place + 2 :]]


def read(workspace: Path) -> Reading:
    """Read the chain of a workspace, and everyone's row as recommendations use it."""
    with Workspace.reading(workspace) as opened:
        state = opened.state()
        dataset = state.dataset
        made = [opened.checkpoints.get(link.fingerprint).arrays() for link in state.chain]
        full = all(_has_every_item(dataset, position) for position in range(dataset.stages))
        scoring, rows = Scoring(state, opened.checkpoints), dict[str, dict[str, Any]]()
        for number, bucket in enumerate(dataset.buckets):
            places = [Place(int(group), number, row) for row, group in enumerate(bucket.groups)]
            _put_in(rows, dict(zip(bucket.users, scoring.rows(places), strict=True)))
    stages = tuple(array for place, arrays in enumerate(made) for array in trained(arrays, place))
    return Reading(stages, None, rows, full)


def _put_in(rows: dict[str, dict[str, Any]], own: Mapping[str, Mapping[str, Any]]) -> None:
    for user, arrays in own.items():
        for name, array in arrays.items():
            rows.setdefault(name, {})[user] = array


CHANGED_SINCE = {"als": "revision 2: its sums run over slots, in their order"}
"""Models whose numbers are not those of any release, and why."""


def must_equal(version: str, way: Way, facts: Mapping[str, Any], step: str) -> bool:
    """Say whether the bytes of a way after a step are promised to be those of an earlier version.

    Those of a model that was revised since are not, and all others of 0.2 are. 0.1 froze the items of the data; now
    they follow the people. That changes nothing where the catalogue is declared, or where every stage knows every item
    anyway. An item that came later stood behind all others in 0.1, however it is called; now it stands where its id
    belongs.
    """
    if way.model in CHANGED_SINCE:
        return False
    if version != "0.1":
        return True
    came_later = step in ("learn more", "forget items")
    return facts["catalogue"] == "declared" or (bool(facts["every group has every item"]) and not came_later)


def _has_every_item(dataset: Dataset, position: int) -> bool:
    return len(set(dataset.learners(position).item_index.tolist())) == len(dataset.items)
