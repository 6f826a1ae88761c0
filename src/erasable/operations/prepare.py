"""From an input to knowledge: read, scale, filter, catalogue, holdout and groups, in that order."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from erasable.data import (
    Catalogue,
    ColumnNames,
    CoreFilter,
    Ids,
    Interactions,
    RatingScale,
    read_catalogue,
    read_interactions,
    recognise_scale,
)
from erasable.errors import DataRefused, Refused, WrongUse
from erasable.grouping import MOST_GROUPS, read_positions
from erasable.operations.work import Work
from erasable.store import Workspace
from erasable.training import Config, Knowledge, arrange

ANY_COLUMNS = ColumnNames()


@dataclass(frozen=True)
class Inputs:
    """What learning is given beside the data: column names, and groups or a catalogue decided elsewhere."""

    columns: ColumnNames = ANY_COLUMNS
    groups_from: Path | None = None
    catalogue: Path | None = None


NO_INPUTS = Inputs()


@dataclass(frozen=True)
class _Given:
    """What was decided elsewhere; each may be missing."""

    positions: Mapping[str, int] | None = None
    groups: int | None = None
    catalogue: Catalogue | None = None
    scale: RatingScale | None = None
    core: CoreFilter | None = None
    settings: Mapping[str, Any] | None = None


def prepare(source: Any, config: Config, inputs: Inputs, work: Work) -> Knowledge:  # noqa: ANN401 - path or table
    """Read interactions and decide everything that learning rests on."""
    reporter, given = work.reporter, _given(config, inputs)
    config = _with_given(config, given, inputs)
    declared = RatingScale(*config.rating_scale) if config.rating_scale is not None else given.scale
    with reporter.track("reading"):
        read = read_interactions(source, inputs.columns, declared)
    for note in read.notes:
        reporter.note(note)
    with _naming(source):
        scale = declared or recognise_scale(read.interactions.rating)
        reporter.note(f"rating scale {scale}")
        kept = _filtered(read.interactions, config, given)
        catalogue = given.catalogue or Catalogue.from_items(kept.items)
        numbered = kept.with_items(catalogue.items)
    _check_groups(numbered, config, given, inputs)
    kept_items = frozenset(kept.items) if config.min_interactions else None
    frame = Knowledge(config, catalogue, scale, (), numbered, kept_items)
    return arrange(numbered, frame, work.grouping, given.positions)


@contextmanager
def _naming(source: Any) -> Iterator[None]:  # noqa: ANN401 - path or table
    """Say in a refusal which input it is about."""
    try:
        yield
    except DataRefused as refused:
        raise DataRefused(f"{source if isinstance(source, str | Path) else 'the table'}: {refused}") from refused


def _given(config: Config, inputs: Inputs) -> _Given:
    groups = _given_groups(config, inputs.groups_from) if inputs.groups_from else _Given()
    if inputs.catalogue is None:
        return groups
    if inputs.catalogue.is_dir():
        with Workspace.reading(inputs.catalogue) as workspace:
            knowledge = workspace.state().knowledge
        return replace(groups, catalogue=knowledge.catalogue, scale=groups.scale or knowledge.scale)
    return replace(groups, catalogue=read_catalogue(inputs.catalogue))


def _given_groups(config: Config, source: Path) -> _Given:
    if not source.is_dir():
        positions = read_positions(source)
        settings = {"grouping": "given", "order": "number", "policy": "fixed"}
        return _Given(positions=positions, groups=max(positions.values()) + 1, settings=settings)
    with Workspace.reading(source) as workspace:
        knowledge = workspace.state().knowledge
        positions = {user: place for place, group in enumerate(knowledge.groups) for user in group.users}
    core = None
    if knowledge.kept_items is not None:
        core = CoreFilter(Ids.of(sorted(positions)), Ids.of(sorted(knowledge.kept_items)))
    settings = {name: getattr(knowledge.config, name) for name in ("grouping", "order", "policy")}
    if settings["policy"] == "regroup":  # these groups are taken as they are
        settings["policy"] = "fixed"
    return _Given(positions, len(knowledge.groups), None, knowledge.scale, core, settings)


def _with_given(config: Config, given: _Given, inputs: Inputs) -> Config:
    if config.strategy == "retrain" and given.groups not in (None, 1):
        raise WrongUse("--strategy retrain trains everyone in one group: give --groups-from a source with one group")
    if given.positions is not None and config.policy == "regroup":
        raise WrongUse("--policy regroup decides groups anew: leave out --groups-from")
    if given.positions is None:
        if config.grouping == "given":
            raise WrongUse("--grouping given needs --groups-from")
        return config
    if (given.groups or 0) > MOST_GROUPS:
        raise DataRefused(
            f"{inputs.groups_from}: {given.groups} groups are too many: number the positions from 0 without gaps"
        )
    return Config(**{**config.model_dump(), **(given.settings or {}), "groups": given.groups})


def _filtered(interactions: Interactions, config: Config, given: _Given) -> Interactions:
    if not config.min_interactions:
        return interactions
    core = given.core or CoreFilter.of(interactions, config.min_interactions)
    return core.apply(interactions)


def _check_groups(interactions: Interactions, config: Config, given: _Given, inputs: Inputs) -> None:
    users = interactions.users
    if given.positions is not None:
        missing = sum(user not in given.positions for user in users)
        if missing:
            raise DataRefused(
                f"{inputs.groups_from}: {missing} of the {len(users)} users of the data have no group there: "
                "add them, or drop their rows from the data"
            )
    elif config.groups > len(users) and config.grouping != "independent":
        raise Refused(
            f"there are only {len(users)} users for {config.groups} groups: give --groups {len(users)} or fewer"
        )
