"""The acceptance test of exactness on one random case, through the command's own entry point; no pytest here.

Learn A and forget; learn B from the file without what was erased, with A's rating scale and, where A's groups or filter
stay as they were, `--groups-from` A. No catalogue is declared. Where a part of the table comes later, A learns it with
`--more`. The checkpoints must be the same by name and byte, and `verify` must say so of A.
"""

import io
import json
import math
import sys
import time
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from erasable.cli.main import main
from erasable.data import Ids, Interactions
from erasable.models import Stage, find_model
from erasable.requests import Request
from erasable.workspace import Workspace
from kit.random_cases import CHAINS, Asked, Case, Moment, requests_of, without
from kit.random_tables import Pair, Row, write_lines, write_rows
from kit.reference import REFERENCES, Arrays, ReferenceDmf, ReferenceNmf, Samples, train_reference

AGREEMENT = 1e-5
STEADY = 1e-6
SHAKING = 2.0**-22  # four roundings to 32 bits


class CaseFailed(Exception):
    """A case did not come out as it should."""


@dataclass(frozen=True)
class Outcome:
    """How a case came out: why it failed (empty if it passed), and what was really done."""

    number: int
    failure: str
    seconds: float
    calls: tuple[tuple[Asked, ...], ...] = ()
    checkpoints: int = 0
    new_checkpoints: int = 0
    """How many of A's checkpoints in the end were not there before anything was forgotten."""
    difference: float | None = None
    """The largest difference between any two numbers of A and of the reference; none if that was not looked at."""
    shaken: float | None = None
    """The same between the reference and itself, shaken."""

    @property
    def steady(self) -> bool:
        """Whether the reference was trained, and gives nearly the same when it is shaken.

        Where it does not, a slope that cancels to nearly 0 or a unit that hardly opens decides, in which Adam's first
        steps make the last bits count as much as all others: two trainers of 32 and of 64 bits need not agree.
        """
        return self.shaken is not None and self.shaken <= STEADY


def run_case(case: Case, folder: Path, reference: bool = False, options_of_b: Sequence[str] = ()) -> Outcome:
    """Run a case in an empty folder, if wanted with the reference; options for B alone spoil the comparison."""
    began, failure, facts = time.perf_counter(), "", dict[str, Any]()
    try:
        _run(case, folder, options_of_b, facts)
        if reference:
            facts["difference"], facts["shaken"] = reference_differences(case, folder)
    except CaseFailed as failed:
        failure = str(failed)
    except Exception:  # a case that breaks has failed, and the others go on
        failure = traceback.format_exc()
    outcome = Outcome(case.number, failure, time.perf_counter() - began, **facts)
    if outcome.steady and not outcome.difference <= AGREEMENT:
        return replace(outcome, failure=f"the reference differs by {outcome.difference:.1e}")
    return outcome


def _run(case: Case, folder: Path, options_of_b: Sequence[str], facts: dict[str, Any]) -> None:
    learn_a(case, folder)
    before = checkpoints(folder / "a")
    facts["calls"], left = forget_all(case, folder)
    learn_b(case, folder, left, options_of_b)
    after = checkpoints(folder / "a")
    facts |= {"checkpoints": len(after), "new_checkpoints": len(after.keys() - before.keys())}
    _check_same(after, checkpoints(folder / "b"), _steps(case, folder / "a"))
    verified = command("verify", folder / "a", "--threads", case.threads[1])
    if verified["identical"] is not True:
        raise CaseFailed(f"verify says {verified}")


def command(*words: object) -> dict[str, Any]:
    """Run the command in this process and return what it says; anything but a quiet good end is a failure."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with patch.object(sys, "argv", ["erasable", *map(str, words), "--json"]):
        try:
            with redirect_stdout(out), redirect_stderr(err):
                main()
        except SystemExit as end:
            code = end.code or 0
    if code or err.getvalue():
        raise CaseFailed(f"erasable {words[0]} ended with {code}: {out.getvalue()}{err.getvalue()}")
    return json.loads(out.getvalue())


def learn_a(case: Case, folder: Path) -> None:
    """Learn from the whole file, or from what does not come later."""
    first = case.first_pairs
    rows = [row for row in case.table.rows if row.pair in first]
    file = write_rows(folder / "all.csv", case.table.columns, rows)
    words = [*case.choices.words(), *_scale(case)]
    command("learn", file, "--into", folder / "a", *words, "--threads", case.threads[0])


def learn_b(case: Case, folder: Path, left: frozenset[Pair], options: Sequence[str] = ()) -> None:
    """Learn from the file without what was erased, in another order, with what A declared or decided."""
    rows = [row for row in case.table.rows if row.pair in left]
    order = np.random.default_rng(case.order_of_b).permutation(len(rows))
    file = write_rows(folder / "left.csv", case.table.columns, [rows[place] for place in order])
    given = ["--groups-from", folder / "a"] if case.groups_are_given else []
    words = [*case.choices.words(), *(_scale(case) or ([] if given else _scale_of(folder / "a"))), *given, *options]
    command("learn", file, "--into", folder / "b", *words, "--threads", case.threads[1])


def forget_all(case: Case, folder: Path) -> tuple[tuple[tuple[Asked, ...], ...], frozenset[Pair]]:
    """Make the calls of a case, each about who is there then; return them with the pairs of the file that are left."""
    left, partly_gone, gone, calls = case.first_pairs, set[str](), set[str](), []
    for number, call in enumerate(case.calls):
        left |= learn_later(case, folder, number, gone)
        asked = requests_of(case, call, Moment(left, _members(folder / "a"), partly_gone))
        requests = [request for one in asked for request in one.requests]
        if requests:
            words = words_of(requests, folder / f"call-{number}.csv")
            command("forget", folder / "a", *words, "--yes", "--threads", case.threads[0])
            calls.append(tuple(asked))
        left = without(left, requests)
        partly_gone |= {request.user for request in requests}
        gone |= {request.user for request in requests if request.everything}
    if not calls:
        raise CaseFailed("nothing could be asked for: the case should have been drawn again")
    return tuple(calls), left | learn_later(case, folder, len(case.calls), gone)


def learn_later(case: Case, folder: Path, calls: int, gone: Collection[str] = ()) -> frozenset[Pair]:
    """Learn what comes after so many calls, of those too who are gone and come back, and return its pairs."""
    if case.later is None or case.later.after != calls:
        return frozenset()
    rows = [row for row in case.table.rows if row.pair in case.later.pairs]
    file = write_rows(folder / "more.csv", case.table.columns, rows)
    back = sorted({user for user, _ in case.later.pairs}.intersection(gone))
    readmit = [word for user in back for word in ("--readmit", user)]
    command("learn", file, "--into", folder / "a", "--more", *readmit, "--threads", case.threads[0])
    return case.later.pairs


def words_of(requests: Sequence[Request], file: Path) -> list[object]:
    """Say requests in the words of the command, with a file where words alone can't say it or are many."""
    whole = [request.user for request in requests if request.everything]
    parts = [(request.user, item) for request in requests for item in request.items or ()]
    if not whole and len(requests) == 1:
        return ["--user", requests[0].user, *(word for _, item in parts for word in ("--item", item))]
    if len(whole) > 2 and not parts:
        return ["--users-file", write_lines(file, whole)]
    rows = [Row(*part, rating="", time="") for part in parts]
    named = ["--users-file", write_rows(file, ("user_id", "item_id"), rows)] if parts else []
    return [*(word for user in whole for word in ("--user", user)), *named]


def checkpoints(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every checkpoint by its name in the workspace."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.safetensors")}


def reference_differences(case: Case, folder: Path) -> tuple[float, float]:
    """Train the whole chain of B's data in NumPy; return the largest difference to A, and to itself when shaken."""
    with Workspace.reading(folder / "a") as workspace:
        chain = [workspace.checkpoints.get(link.fingerprint).parameters for link in workspace.state().chain]
    found = [{**parameters.shared, **parameters.rows} for parameters in chain]
    expected = list(_reference_chain(case, folder / "b"))
    model = case.choices.model
    with patch.dict(REFERENCES, {model: Shaken(REFERENCES[model])}):
        shaken = list(_reference_chain(case, folder / "b"))
    return _largest_difference(found, expected), _largest_difference(shaken, expected)


class Shaken:
    """A reference model whose parameters and targets are shaken, anew at each step, as if rounded to 32 bits."""

    def __init__(self, model: ReferenceNmf | ReferenceDmf) -> None:
        self._model, self._generator = model, np.random.default_rng(0)
        self.width, self.row_deviation = model.width, model.row_deviation

    def slopes(self, values: Arrays, samples: Samples) -> Arrays:
        """Return the derivatives at a place nearby."""
        nearby = {name: self._shaken(array) for name, array in values.items()}
        return self._model.slopes(nearby, Samples(samples.users, samples.items, self._shaken(samples.targets)))

    def _shaken(self, array: np.ndarray) -> np.ndarray:
        return array * (1 + self._generator.uniform(-SHAKING, SHAKING, array.shape))


def _reference_chain(case: Case, b: Path) -> Iterator[Arrays]:
    with Workspace.reading(b) as workspace:
        dataset = workspace.state().dataset
        groups = tuple(dataset.groups)
    choices = case.choices
    model = find_model(choices.model)(batch=choices.batch, negatives=choices.negatives)
    epochs = choices.epochs if choices.epoch_budget == "full" else math.ceil(choices.epochs / len(groups))
    shared = None
    for position in range(len(groups)):
        group = _known_rows(groups[: position + 1], choices.strategy == "sisa")
        start = model.start(group.items, choices.seed)
        if shared is not None:  # items that come begin as they do at the start
            start = {**shared, "item": np.concatenate([shared["item"], start["item"][len(shared["item"]) :]])}
        trained = train_reference(model, start, Stage(group, dataset.scale, epochs, choices.seed, position))
        yield trained
        followed = {name: array for name, array in trained.items() if name != "user"}
        shared = None if choices.strategy == "sisa" else followed


def _known_rows(groups: Sequence[Interactions], apart: bool) -> Interactions:
    """Return the last group over the items known there: in the order in which groups bring them, by id in a group."""
    items: dict[str, None] = {}
    for group in groups[-1:] if apart else groups:
        items |= dict.fromkeys(sorted({group.items[number] for number in group.item_index.tolist()}))
    return groups[-1].with_items(Ids.of(items))


def _largest_difference(found: Sequence[Arrays], expected: Sequence[Arrays]) -> float:
    if [stage.keys() for stage in found] != [stage.keys() for stage in expected]:
        raise CaseFailed("A and the reference do not hold the same arrays")
    pairs = [(ours[name], theirs[name]) for ours, theirs in zip(found, expected, strict=True) for name in theirs]
    return max(float(np.abs(ours - theirs).max(initial=0)) for ours, theirs in pairs)


def _check_same(one: dict[str, bytes], other: dict[str, bytes], count: int) -> None:
    whole = [name for name in one if not Path(name).name.startswith("block-")]  # the others are parts of these
    if len(whole) != count:
        raise CaseFailed(f"A has {len(whole)} checkpoints instead of {count}")
    if one.keys() != other.keys():
        raise CaseFailed(f"{len(one.keys() - other.keys())} of A's {count} checkpoints have other names in B")
    if one != other:
        differing = sum(one[name] != other[name] for name in one)
        raise CaseFailed(f"{differing} of {count} checkpoints have other bytes in B")


def _steps(case: Case, folder: Path) -> int:
    """Return how many checkpoints there must be: where rows are not solved, one for each group."""
    if case.number < CHAINS:
        return 1 if case.choices.strategy == "retrain" else case.choices.groups
    with Workspace.reading(folder) as workspace:
        return len({link.fingerprint for link in workspace.state().chain})


def _members(folder: Path) -> list[set[str]]:
    with Workspace.reading(folder) as workspace:
        return [set(group.users) for group in workspace.state().dataset.groups]


def _scale_of(folder: Path) -> list[str]:
    with Workspace.reading(folder) as workspace:
        scale = workspace.state().dataset.scale
    return ["--rating-scale", str(scale.low), str(scale.high)]


def _scale(case: Case) -> list[str]:
    return ["--rating-scale", *case.table.scale] if "scale" in case.declared else []
