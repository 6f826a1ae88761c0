"""How version 0.3 is called, and where its arrays lie: people lie in buckets, and rows are solved to be read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from erasable.chain import Dataset, Scoring
from erasable.chain.buckets import Place
from erasable.grouping.registry import BY_VECTORS
from erasable.workspace import Workspace
from golden import read_any
from golden.read_any import trained
from golden.reading import Reading


def call(words: Sequence[str]) -> None:
    """Run the command; whoever is trained at once has no groupings any more, and says the policy alone.

    0.1's EASE had all items as neighbours, and up to 0.2 gensim learned users' vectors, which is said now.
    """
    at_once = {"als", "ease", "retrain"}.intersection(words)
    of_all = ["--neighbours", "all"] if "ease" in words and "--neighbours" not in words else []
    by_vectors = {*BY_VECTORS}.intersection(words) and "--vectors" not in words
    by_gensim = ["--vectors", "gensim"] if by_vectors else []
    read_any.call([*(_without("--grouping", words) if at_once else words), *of_all, *by_gensim])


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


def _has_every_item(dataset: Dataset, position: int) -> bool:
    return len(set(dataset.learners(position).item_index.tolist())) == len(dataset.items)
