"""Compare models on one table: quality, and what learning and forgetting cost; each in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from erasable.chain.settings import Config
from erasable.data.interactions import Interactions
from erasable.data.splits import SplitSettings
from erasable.errors import Refused, Said, UnknownModel, WrongUse, option, said
from erasable.interrupts import kept_from_children
from erasable.models.base import Model
from erasable.models.registry import model_names, refuse_without_torch
from erasable.operations._one_model import QUALITY, Order
from erasable.operations.prepare import Inputs, RowsRead, read_rows
from erasable.operations.work import Work
from erasable.progress import Progress, Reporter, retelling
from erasable.wording import counted, listed, percentage
from erasable.workspace.tables import encode_interactions

USUAL_MODELS = ("als", "ease", "item-knn", "nmf", "popular")
USUAL_HOLDOUT = 0.1
"""The share that is held out if nothing says what to hold out."""
_MEASURED, _MEASURED_QUICKLY = 10_000, 1_000
_FORGOTTEN, _FORGOTTEN_QUICKLY = 9, 3
_QUICK_EPOCHS = {"nmf": 8, "dmf": 8}
"""One epoch in each of the usual groups."""
_CHILD = "from erasable.operations._one_model import main; main()"
_END_WITHIN = 5.0
_NOT_COMPARED = ("features", "risk_threshold")
"""Settings that need more than the interactions."""
_COLUMNS = pa.schema(
    [
        pa.field("model", pa.string(), nullable=False),
        *(pa.field(name, pa.float64()) for name in QUALITY),
        *(pa.field(name, pa.float64()) for name in ("learn_seconds", "forget_cost", "forget_seconds")),
        pa.field("memory_bytes", pa.int64()),
        pa.field("failed", pa.string()),
    ]
)


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """What `compare` has found.

    Parameters
    ----------
    table : pyarrow.Table
        One row for each model: `model`; its quality `ndcg@10`, `hr@10`, `recall@10`; `learn_seconds`; `forget_cost` (of
        the work of training everyone at once) and `forget_seconds`, both the median over some people; `memory_bytes`;
        and `failed`, why a model could not be measured.
    facts : mapping of str to Any
        How much data there is, and how many people were measured and forgotten.
    notes : tuple of str
        Which models could not be measured, and how the others were.

    Examples
    --------
    >>> table = pa.table({"model": ["ease", "popular"], "ndcg@10": [0.4, 0.2]})
    >>> ModelComparison(table, {"users": 100}, ()).table["model"].to_pylist()
    ['ease', 'popular']
    """

    table: pa.Table
    facts: Mapping[str, Any]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return everything as values that JSON has."""
        return {"models": self.table.to_pylist(), **self.facts, "notes": list(self.notes)}


@dataclass(frozen=True)
class _Entrant:
    """One model with its settings, under the name that the table shows."""

    label: str
    config: Config
    lowered: bool
    """Whether it gets fewer epochs than usual."""


def compare(
    source: Any,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    models: Sequence[str | Model | type[Model]],
    settings: Mapping[str, Any],
    inputs: Inputs,
    work: Work,
    quick: bool = False,
) -> ModelComparison:
    """Learn a table with each model and measure it; the table is read once, and all are tested on the same rows.

    A model is a name, a name with settings (`als:factors=128:anchors=0.3`), or an object. Nothing is stored.
    """
    common = with_test_rows(settings)
    named = _entrants(models, common, quick)
    rows = read_rows(source, named[0].config, inputs, work)
    entrants = _entrants(models, {**common, **rows.settings}, quick) if rows.settings else named
    _check_held_out(rows.interactions, entrants[0].config)
    content, found = encode_interactions(rows.interactions), list[dict[str, Any]]()
    for entrant in entrants:
        order = _order(entrant.config, rows, quick, work.threads)
        try:
            refuse_without_torch(entrant.config.learner)
        except UnknownModel as error:
            found.append({"model": entrant.label, "failed": error.said})
        else:
            found.append({"model": entrant.label, **_in_own_process(order, content, entrant.label, work.reporter)})
    measured = [one for one in found if "facts" in one]
    if not measured:
        raise Refused(f"no model could be measured; {found[0]['model']}: ", found[0]["failed"])
    shared = entrants[0].config.own.written()
    shared = {name: shared[name] for name in (*SplitSettings.model_fields, "seed") if name in shared}
    facts = {**measured[0]["facts"], "quick": quick, "settings": shared}
    cells = [{name: one.get(name) for name in _COLUMNS.names} for one in found]
    failures = (said(one["model"], " could not be measured: ", one["failed"]) for one in found if "failed" in one)
    return ModelComparison(pa.Table.from_pylist(cells, _COLUMNS), facts, (*failures, *_notes(facts, entrants)))


def _check_held_out(interactions: Interactions, config: Config) -> None:
    """Refuse a split that leaves nothing to measure on, before any model learns."""
    if not len(config.splitting.of(interactions)[1]):
        share, split = option("holdout", USUAL_HOLDOUT), option("split", "leave-last-out")
        raise Refused(
            "nothing is held out to measure on: give ", share, " or ", split, ", or data with longer histories"
        )


def with_test_rows(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that hold out a tenth of the interactions, if none says what to hold out."""
    given = dict(settings)
    return given if {"holdout", "split", "split_time"} & given.keys() else {**given, "holdout": USUAL_HOLDOUT}


def _entrants(
    models: Sequence[str | Model | type[Model]], common: Mapping[str, Any], quick: bool
) -> tuple[_Entrant, ...]:
    if isinstance(models, str):
        raise WrongUse(f"give a list of models, such as [{models!r}]")
    entrants = [_entrant(one, common, quick) for one in models]
    labels = [one.label for one in entrants]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise WrongUse(f"the model {twice} is given twice: leave one out, or give one of them other settings")
    if not entrants:
        raise WrongUse(f"there is no model to compare: name some, such as {', '.join(USUAL_MODELS)}")
    return tuple(entrants)


def _entrant(given: str | Model | type[Model], common: Mapping[str, Any], quick: bool) -> _Entrant:
    named: tuple[str, dict[str, Any]] = (repr(given), {"model": given})
    label, own = _spelled(given) if isinstance(given, str) else named
    for name in own:
        if name in SplitSettings.model_fields or name == "seed":
            raise WrongUse(f"{label}: `{name}` must be the same for all models: give it beside them")
    preset = own.pop("preset", None)
    config = Config.named({**common, **own}, preset)
    label = config.model if isinstance(given, type) else label
    further = next((name for name in _NOT_COMPARED if getattr(config, name) is not None), None)
    if further is not None:
        raise WrongUse(
            f"{label}: `{further}` needs more than interactions: leave it out, or learn with it and evaluate"
        )
    epochs = _QUICK_EPOCHS.get(config.model)
    lowered = quick and epochs is not None and "epochs" not in config.learner.settings.model_fields_set
    return _Entrant(label, config.changed(epochs=epochs) if lowered else config, lowered)


def _spelled(given: str) -> tuple[str, dict[str, Any]]:
    """Return the label and the settings of a model that is written as NAME or NAME:setting=value:…"""
    name, *settings = (part.strip() for part in given.split(":"))
    found: dict[str, Any] = {"model": name}
    for setting in settings:
        key, sign, value = (part.strip() for part in setting.partition("="))
        if not (key and sign and value):
            raise WrongUse(
                f"{given!r} is no model with settings: write NAME or NAME:setting=value, like als:factors=32"
            )
        if key == "model":
            raise WrongUse(f"{given!r} names two models: write {value} instead, or both with a comma between")
        found[key.replace("-", "_")] = value
    return given.strip(), found


def _order(config: Config, rows: RowsRead, quick: bool, threads: int) -> Order:
    kind = type(config.learner)
    brought = config.model not in model_names()
    if brought and ("<locals>" in kind.__qualname__ or kind.__module__ == "__main__"):
        raise WrongUse(
            f"the model {config.model!r} can't be measured in a process of its own: put its class into a module that "
            "can be imported"
        )
    return Order(
        settings=config.flat(),
        model_class=(kind.__module__, kind.__qualname__) if brought else None,
        path=sys.path if brought else [],
        scale=(rows.scale.low, rows.scale.high),
        people_measured=_MEASURED_QUICKLY if quick else _MEASURED,
        people_forgotten=_FORGOTTEN_QUICKLY if quick else _FORGOTTEN,
        threads=threads,
    )


def _in_own_process(order: Order, content: bytes, label: str, reporter: Reporter) -> dict[str, Any]:
    """Measure one model in a new process, and return its figures, or why there are none."""
    with _started() as process, retelling(reporter, label) as retold:
        source, answers = process.stdin, process.stdout
        if source is None or answers is None:
            raise Refused("a process could not be given pipes: run this again")
        try:
            source.write(json.dumps({**asdict(order), "bytes": len(content)}).encode() + b"\n" + content)
            source.flush()
        except BrokenPipeError:
            return {"failed": _died(process)}
        done, step, total = 0, "", None
        for line in answers:
            match json.loads(line):
                case {"step": step, "total": total}:
                    done = 0
                case {"done": samples}:
                    done += samples
                case {"found": found}:
                    return dict(found)
                case {"failed": {"said": words}}:
                    return {"failed": Said(*words)}
            retold(Progress(label, f"{label}: {step}", done, total))
        return {"failed": _died(process)}


def _died(process: subprocess.Popen[bytes]) -> str:
    return f"its process died (exit code {process.wait()}), perhaps out of memory: leave this model out"


@contextmanager
def _started() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that measures one model, and end it with the block, however that ends."""
    command = [sys.executable, "-P", "-c", _CHILD]  # -P: no module is imported from the working folder
    with kept_from_children():
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - ours
    try:
        yield process
    finally:
        process.kill()
        process.wait(_END_WITHIN)
        for pipe in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):
                pipe.close() if pipe is not None else None


def _notes(facts: Mapping[str, Any], entrants: Sequence[_Entrant]) -> Iterator[str]:
    """Say how it was measured."""
    people = counted(facts["people_measured"], "person", "people")
    chosen = " chosen by a hash of seed and id" if facts["people_measured"] >= _MEASURED_QUICKLY else ""
    yield (
        f"quality: the whole catalogue is ranked, less what each has in training, for {people}{chosen}; all models "
        "are tested on the same held-out interactions"
    )
    forgotten = counted(facts["people_forgotten"], "person", "people")
    yield (
        f"forgetting: the median over {forgotten} chosen by a hash of seed and id, each forgotten from the same model; "
        "cost is in units of training everyone at once; seconds are those of changing data and model in memory: "
        "searching files and the certificate come on top"
    )
    for one in entrants:
        if one.config.anchors < 1:
            yield (
                f"{one.label}: {percentage(one.config.anchors)} of the people shape shared parameters; the median is "
                "that of everyone, and forgetting one of those costs more"
            )
    yield (
        "memory: the most that a process of its own, and what it started, held while it learned and forgot, data and "
        "Python included"
    )
    lowered = [f"{one.label} with {one.config.epochs} epochs" for one in entrants if one.lowered]
    if facts["quick"]:
        fewer = f"; {listed(lowered)}, fewer than usual, so better is possible" if lowered else ""
        yield f"quick: quality on at most {_MEASURED_QUICKLY:,} people, {_FORGOTTEN_QUICKLY} people forgotten{fewer}"
