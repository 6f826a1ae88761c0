"""From a table to a dataset: read, do-not-learn list, scale, filter, catalogue, holdout and groups, in that order."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.chain.arrangement import arrange
from erasable.chain.dataset import (
    Dataset,
    no_interactions,
)
from erasable.chain.settings import Config
from erasable.data.catalogue import Catalogue, CoreFilter, read_catalogue
from erasable.data.columns import ANY_COLUMNS, OF_WEIGHTS, ColumnNames, column_option
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions, RatingScale, recognise_scale
from erasable.data.item_features import ItemFeatures
from erasable.data.readers import ReadResult, read_batches, read_interactions
from erasable.data.sources import name_of
from erasable.data.values import OnBadRow, TimeForm, Weights, is_number
from erasable.errors import BadRows, DataRefused, Refused, Said, WrongUse, option
from erasable.grouping.registry import MOST_GROUPS, read_positions
from erasable.operations._streaming import Dealt, can_stream
from erasable.operations.do_not_learn import ListChoice
from erasable.operations.storage import MemorySession, Session
from erasable.operations.work import Work
from erasable.proof.do_not_learn import NONE_LISTED, DoNotLearnFiles, DoNotLearnList, ListedCount
from erasable.workspace.workspace import Workspace

_FOR_SCALE = Said("for another scale give rating_scale=(LOW, HIGH)", "for another scale give --rating-scale LOW HIGH")
_FEWEST_USERS = 2
_USUAL_MAX_WEIGHT = 10
_ITEMS = Said("items=TABLE", "--items FILE")
Column = str | int | None
"""A column by its name, or by its number from 1 if there are no names; None to recognise it."""


@dataclass(frozen=True)
class Inputs:
    """What learning takes beside the data: column names, given groups and items, and the do-not-learn list.

    Most of it has a keyword of its own in `Recommender.fit` and `learn_more`.

    Parameters
    ----------
    columns : ColumnNames, optional
        The columns to read.
    groups_from, catalogue : Path, optional
        Files or workspaces that give the groups and the items.
    do_not_learn : DoNotLearnFiles, optional
        Another do-not-learn list, with its key, than the one that is remembered.
    on_bad_row : {"refuse", "skip"}, default "refuse"
        Whether unusable rows are refused, or left out and counted.
    without_do_not_learn : bool, default False
        Whether no such list is used from now on.
    readmit : tuple of str, optional
        People on that list who want to come back.
    readable_by_group : bool, default False
        Whether the group of the owner may read the files of a new workspace.
    items : pyarrow.Table, optional
        Attributes of items, one row an item, among them the setting `features`.

    Examples
    --------
    >>> Inputs(readable_by_group=True).on_bad_row
    'refuse'
    """

    columns: ColumnNames = ANY_COLUMNS
    groups_from: Path | None = None
    catalogue: Path | None = None
    do_not_learn: DoNotLearnFiles | None = None
    """Another do-not-learn list, with its key, than the one that is remembered."""
    on_bad_row: OnBadRow = "refuse"
    """Whether unusable rows are refused, or left out and counted."""
    without_do_not_learn: bool = False
    """Whether no such list is used from now on."""
    readmit: tuple[str, ...] = ()
    """People on that list who want to come back."""
    readable_by_group: bool = False
    """Whether the group of the owner may read the files of a new workspace."""
    items: pa.Table | None = None
    """Attributes of items, as `read_declared` gives them: the features are among them."""

    @property
    def listing(self) -> ListChoice:
        """What is said here about the do-not-learn list."""
        return ListChoice(self.do_not_learn, self.without_do_not_learn)


NO_INPUTS = Inputs()


def named_columns(given: Mapping[str, Column]) -> ColumnNames:
    """Return the columns that are named."""
    return ColumnNames(**{role: str(name) for role, name in given.items() if name is not None})


def named_inputs(inputs: Inputs, columns: Mapping[str, Column], on_bad_row: OnBadRow | None) -> Inputs:
    """Return inputs with the columns that are named, and the rule for bad rows."""
    if on_bad_row is not None and on_bad_row not in get_args(OnBadRow):
        raise WrongUse(f"on_bad_row={on_bad_row!r} makes no sense: give one of {', '.join(get_args(OnBadRow))}")
    named = ColumnNames(**{**inputs.columns.given(), **named_columns(columns).given()})
    return replace(inputs, columns=named, on_bad_row=on_bad_row or inputs.on_bad_row)


@dataclass(frozen=True)
class _Given:
    """What files or another workspace give; each may be missing."""

    positions: Mapping[str, int] | None = None
    groups: int | None = None
    catalogue: Catalogue | None = None
    scale: RatingScale | None = None
    core: CoreFilter | None = None
    settings: Mapping[str, Any] | None = None
    features: ItemFeatures | None = None


@dataclass(frozen=True)
class Read:
    """Interactions, the users' risks if there is a column of them, and what the do-not-learn list kept out."""

    interactions: Interactions
    risk: Mapping[str, float] | None
    suppressed: ListedCount
    rated: bool
    """Whether there is a column of ratings."""
    source: ReadResult
    """Everything that was read, before the do-not-learn list."""
    readmitted: DoNotLearnList | None = None
    """The entries to take off the list, because those people come back."""
    items: pa.Table | None = None
    """Attributes of items that came with them."""
    notes: tuple[str, ...] = ()
    """What else was left out, and why."""


@dataclass(frozen=True)
class Prepared:
    """The dataset to learn, what the do-not-learn list kept out of it, and the entries to take off that list."""

    dataset: Dataset
    suppressed: ListedCount
    source: ReadResult
    readmitted: DoNotLearnList | None = None


def prepare(
    source: Any,  # noqa: ANN401 - path or table
    config: Config,
    inputs: Inputs,
    work: Work,
    erased: DoNotLearnList | None = None,
    session: Session | None = None,
) -> Prepared:
    """Read interactions, leave out people who were erased, and build the dataset: bucket by bucket, if that can be."""
    reporter, given = work.reporter, _given(config, inputs)
    config = _weighing(_with_given(config, given, inputs), inputs.columns)
    declared = RatingScale(*config.rating_scale) if config.rating_scale is not None else given.scale
    declared = declared if config.max_weight is None else RatingScale(1, config.max_weight)
    if can_stream(config, given.positions) and not inputs.readmit and inputs.columns.risk is None:
        dealt = Dealt(config, given.catalogue, given.positions, erased, given.features)
        return _prepared_in_buckets(session or MemorySession(), source, inputs, dealt, declared, work)
    read = read_source(source, inputs, declared, work, erased=erased, weights=config.weights)
    with _naming(source):
        refuse_other_times(config, read.source.taken.time_form)
    interactions, risky = read.interactions, risky_users(read.risk, config)
    with _naming(source):
        scale = declared or recognise_scale(interactions.rating)
        reporter.note(_scale_in_words(config, scale))
        kept, numbered = _kept(interactions, config, given)
    dataset = _arranged(kept, numbered, config, replace(given, scale=scale), inputs, work, risky)
    return Prepared(dataset, read.suppressed, read.source, read.readmitted)


class RowsRead(NamedTuple):
    """Rows that were read once, to learn from several times, and what was found of them."""

    interactions: Interactions
    scale: RatingScale
    settings: Mapping[str, Any]
    """What the columns ask for: the most that a pair weighs, if there are weights."""

    def arranged(self, config: Config, work: Work) -> Dataset:
        """Build the dataset of these rows, as learning them would."""
        if _are_timeless(self.interactions):
            refuse_other_times(config, None)
        given = _Given(scale=self.scale)
        return _arranged(*_kept(self.interactions, config, given), config, given, NO_INPUTS, work)


def read_rows(source: Any, config: Config, inputs: Inputs, work: Work) -> RowsRead:  # noqa: ANN401 - path or table
    """Read rows to learn from several times; nobody is left out, because nothing of it is kept."""
    weighed = _weighing(config, inputs.columns)
    declared = None if weighed.rating_scale is None else RatingScale(*weighed.rating_scale)
    declared = declared if weighed.max_weight is None else RatingScale(1, weighed.max_weight)
    read = read_source(source, inputs, declared, work, weights=weighed.weights)
    with _naming(source):
        scale = declared or recognise_scale(read.interactions.rating)
    _refuse_to_split(config, read.source.taken.time_form)
    settings = {} if weighed.max_weight is None else {"max_weight": weighed.max_weight}
    return RowsRead(read.interactions, scale, settings)


def prepare_again(held: Dataset, everything: Interactions, config: Config, inputs: Inputs, work: Work) -> Dataset:
    """Build the dataset of all rows that are held, as if they were learned for the first time with these settings."""
    given = _given(config, inputs, needs_items=held.features is None)
    config = _with_given(config, given, inputs)
    if config.risk_threshold is not None:
        raise Refused(
            "risks are not kept, so this can't be learned again in place: learn from all data into a new folder"
        )
    declared = held.scale if config.rating_scale is None else RatingScale(*config.rating_scale)
    declared.check(everything.rating)
    if _are_timeless(everything):
        refuse_without_time(config)
        if config.splitting.needs_time:
            raise Refused("no times are held, so they can't be split by: leave out ", option("split"))
    features = given.features or _features_held(held, config)
    given = replace(given, catalogue=given.catalogue or held.catalogue, scale=declared, features=features)
    return _arranged(*_kept(everything, config, given), config, given, inputs, work)


def _kept(interactions: Interactions, config: Config, given: _Given) -> tuple[Interactions, Interactions]:
    """Return the rows that the filter keeps, and the same numbered by the catalogue if there is one."""
    kept = _filtered(interactions, config, given)
    return kept, kept.with_items(given.catalogue.items) if given.catalogue else kept


def _arranged(
    kept: Interactions,
    numbered: Interactions,
    config: Config,
    given: _Given,
    inputs: Inputs,
    work: Work,
    risky: Collection[str] = (),
) -> Dataset:
    """Divide people into groups, and build the dataset."""
    _check_groups(numbered, config, given, inputs)
    kept_items = frozenset(kept.items) if config.min_interactions else None
    frame = Dataset.of_nobody(config, given.catalogue, given.scale or recognise_scale(kept.rating), kept_items)
    return arrange(numbered, replace(frame, features=given.features), work.grouping, given.positions, risky)


def _prepared_in_buckets(
    session: Session,
    source: Any,  # noqa: ANN401 - path or table
    inputs: Inputs,
    dealt: Dealt,
    declared: RatingScale | None,
    work: Work,
) -> Prepared:
    """Read a source and deal people out to buckets as they come."""
    reporter, config = work.reporter, dealt.config
    batches = read_batches(source, inputs.columns, declared, inputs.on_bad_row, config.weights)
    with session.dealing(config.seed, config.max_weight) as dealing:
        with reporter.track("reading"), _naming_remedies(_FOR_SCALE):
            for values in batches:
                dealing.add(values)
        facts = batches.facts
        with _naming(source):
            refuse_other_times(config, facts.taken.time_form)
        with reporter.track("dealing out"), _naming(source):
            dealt.take(dealing, session, work)
    for note in facts.notes(dealt.repeated):
        reporter.note(note)
    if dealt.users < _FEWEST_USERS:
        raise DataRefused(f"{batches.name} holds one user only: give the interactions of two users at least")
    if dealt.listed.total:
        reporter.note(f"left out what is on the do-not-learn list ({dealt.listed})")
    with _naming(source):
        _refuse_few(dealt.left)
        scale = declared or recognise_scale([dealt.lowest, dealt.highest])
    reporter.note(_scale_in_words(config, scale))
    _refuse_without_group(dealt.without_group, dealt.left, inputs)
    dataset = dealt.dataset(scale)
    nobody = no_interactions(Ids.of([]))
    read = ReadResult(
        nobody, (), None, facts.rated, facts.taken, facts.rows, dealt.repeated, facts.bad_rows, facts.notices
    )
    return Prepared(dataset, dealt.listed, read)


def _are_timeless(rows: Interactions) -> bool:
    return rows.time is None or bool(np.isnan(rows.time).all())


def refuse_without_time(config: Config) -> None:
    """Refuse a model that learns from the order in time, for data without times."""
    if config.learner.uses_time:
        raise DataRefused(
            f"{config.model} learns from the order in time, and there is no time: name its column with ",
            column_option("time"),
            ", or choose a model that needs none",
        )


def refuse_other_times(config: Config, form: TimeForm | None) -> None:
    """Refuse interactions without the times that model or split need, or with dates where a number is declared."""
    if form is None:
        refuse_without_time(config)
    _refuse_to_split(config, form)


def _refuse_to_split(config: Config, form: TimeForm | None) -> None:
    since = config.own.split_time
    if form is None and config.splitting.needs_time:
        given = option("split", config.own.split) if since is None else option("split_time")
        raise DataRefused(given, " needs times, and there are none: name their column with ", column_option("time"))
    if since is not None and is_number(since) and form not in (None, "number"):
        raise DataRefused(f"times are dates here, and {since} is a number: write ", option("split_time"), " as a date")


def _weighing(config: Config, columns: ColumnNames) -> Config:
    """Return the configuration with the most that a pair may weigh, if a column of weights or events is named."""
    weight, event = (column_option(role) for role in OF_WEIGHTS)
    if (columns.event is None) != (config.own.event_weights is None):
        raise WrongUse(event, " and ", option("event_weights"), " need each other: give both, or neither")
    if columns.weight is None and columns.event is None:
        if config.weighed:
            raise WrongUse(option("max_weight"), " is for weights: name their column with ", weight, " or ", event)
        return config
    if columns.rating is not None or config.rating_scale is not None:
        given = column_option("rating") if columns.rating is not None else option("rating_scale")
        raise WrongUse("either ratings or weights are learned: leave out ", given, ", or ", weight, " and ", event)
    return config if config.weighed else config.changed(max_weight=_USUAL_MAX_WEIGHT)


def _scale_in_words(config: Config, scale: RatingScale) -> str:
    return f"rating scale {scale}" if config.max_weight is None else f"weights add up to at most {config.max_weight}"


def risky_users(risk: Mapping[str, float] | None, config: Config) -> frozenset[str]:
    """Return the users whose risk reaches the threshold; a column needs a threshold and vice versa."""
    if (risk is None) != (config.risk_threshold is None):
        raise WrongUse(
            column_option("risk"), " and ", option("risk_threshold"), " need each other: give both, or neither"
        )
    threshold = config.risk_threshold or 0.0
    return frozenset(user for user, value in (risk or {}).items() if value >= threshold)


def read_source(
    source: Any,  # noqa: ANN401 - path or table
    inputs: Inputs,
    scale: RatingScale | None,
    work: Work,
    fewest_users: int = 2,
    for_scale: str = _FOR_SCALE,
    erased: DoNotLearnList | None = None,
    weights: Weights | None = None,
) -> Read:
    """Read interactions, leave out those on the do-not-learn list, and count them.

    If `fewest_users` is 1, the list may leave out everyone.
    """
    if inputs.readmit and erased is None:
        raise WrongUse("no do-not-learn list is kept, so everyone may come back: leave out ", option("readmit"))
    reporter = work.reporter
    with reporter.track("reading"), _naming_remedies(for_scale):
        read = read_interactions(source, inputs.columns, scale, fewest_users, inputs.on_bad_row, weights)
    for note in read.notes:
        reporter.note(note)
    if erased is None:
        return Read(read.interactions, read.risk, NONE_LISTED, read.rated, read)
    with reporter.track("looking for erased people"), _naming(source):
        back = _readmitted(read.interactions, erased, inputs.readmit)
        rows, suppressed = erased.without(back).interactions_among(read.interactions, work.threads)
        left = _without(read.interactions, rows, fewest_users) if suppressed.total else read.interactions
    if suppressed.total:
        reporter.note(f"left out what is on the do-not-learn list ({suppressed})")
    return Read(left, read.risk, suppressed, read.rated, read, back)


@contextmanager
def _naming_remedies(for_scale: str) -> Iterator[None]:
    """Add to the error about bad rows what to do."""
    try:
        yield
    except BadRows as refused:
        skip, scale = option("on_bad_row", "skip"), ("; ", for_scale) if refused.off_scale else ()
        raise DataRefused(refused.said, "; to leave bad rows out give ", skip, *scale) from None


def _readmitted(interactions: Interactions, erased: DoNotLearnList, readmit: Sequence[str]) -> DoNotLearnList:
    """Return the list entries of those who come back; people who are not on the list are refused."""
    back = DoNotLearnList(erased.key)
    for user in readmit:
        found = erased.entries_of(user, interactions)
        if not found.size:
            raise Refused(
                f"nobody has the id {user!r} on the do-not-learn list: check it, or leave out ", option("readmit")
            )
        if not len(interactions.of_users([user])):
            raise Refused(
                f"the user {user!r} has no row here: ", option("readmit"), " is for people whose data is in this table"
            )
        back = back.joined(found)
    return back


def _without(interactions: Interactions, rows: NDArray[np.bool_], fewest_users: int) -> Interactions:
    """Drop rows, and items that nobody else has, as if they had never been there."""
    left = interactions.select(~rows)
    if fewest_users > 1:
        _refuse_few(len(left.users))
    return left.with_items(left.items.take(np.unique(left.item_index)))


def _refuse_few(users: int) -> None:
    if users < _FEWEST_USERS:
        raise DataRefused(
            f"without what is on the do-not-learn list, users left: {users}: give the interactions of two users "
            "at least"
        )


@contextmanager
def _naming(source: Any) -> Iterator[None]:  # noqa: ANN401 - path or table
    """Name the input in an error."""
    try:
        yield
    except (DataRefused, Refused) as refused:
        raise type(refused)(f"{name_of(source)}: ", refused.said) from refused


def _given(config: Config, inputs: Inputs, needs_items: bool = True) -> _Given:
    groups = _given_groups(config, inputs.groups_from) if inputs.groups_from else _Given()
    groups = replace(groups, features=_features(config, inputs, needs_items))
    if inputs.catalogue is None:
        return groups
    catalogue, scale = declared_catalogue(inputs.catalogue)
    return replace(groups, catalogue=catalogue, scale=groups.scale or scale)


def _features(config: Config, inputs: Inputs, needs_items: bool = True) -> ItemFeatures | None:
    """Return the features of items to learn from, if the settings name some."""
    if config.features is None:
        return None
    if inputs.items is not None:
        return ItemFeatures.chosen(inputs.items, [*config.features])
    if needs_items:
        raise WrongUse(option("features"), " are columns of the items: give them too, with ", _ITEMS)
    return None


def _features_held(held: Dataset, config: Config) -> ItemFeatures | None:
    """Return those features that are held which the settings name."""
    if config.features is None or held.features is None:
        return None
    missing = [name for name in config.features if name not in held.features.names]
    if missing:
        raise WrongUse(f"the feature {missing[0]!r} is not held: give the items with it, with ", _ITEMS)
    return ItemFeatures.chosen(held.features.table, [*config.features])


def with_new_features(before: Dataset, inputs: Inputs) -> Dataset:
    """Return the dataset with the features that a new table of items says, where features are learned from."""
    found = _features(before.config, inputs, needs_items=False)
    return before if found is None else before.with_features(found)


def declared_catalogue(source: Path) -> tuple[Catalogue, RatingScale | None]:
    """Read the catalogue from a file, or from a workspace with its rating scale.

    A workspace without a declared catalogue is refused: an item that one person alone has is personal, and would stay
    for ever.
    """
    if not source.is_dir():
        return read_catalogue(source), None
    with Workspace.reading(source) as workspace:
        dataset = workspace.state().dataset
    if dataset.catalogue is None:
        raise WrongUse(
            f"{source} has no declared catalogue: its items follow the people, and one that a single person has is "
            "personal. Write the items that are not, one id a line, into a file and give ",
            Said("catalogue=FILE", "--catalogue FILE"),
            ", or leave it out",
        )
    return dataset.catalogue, dataset.scale


def _given_groups(config: Config, source: Path) -> _Given:
    if not source.is_dir():
        positions = read_positions(source)
        settings = {"grouping": "given", "order": "number", "policy": "fixed"}
        return _Given(positions=positions, groups=max(positions.values()) + 1, settings=settings)
    with Workspace.reading(source, model=type(config.learner)) as workspace:
        dataset = workspace.state().dataset
        positions = {
            user: group
            for bucket in dataset.buckets
            for user, group in zip(bucket.users, bucket.groups.tolist(), strict=True)
        }
    core = None
    if dataset.kept_items is not None:
        core = CoreFilter(Ids.of(sorted(positions)), Ids.of(sorted(dataset.kept_items)))
    settings = {name: getattr(dataset.config, name) for name in ("grouping", "order", "policy")}
    if settings["policy"] == "regroup":  # the given groups are used as they are
        settings["policy"] = "fixed"
    return _Given(positions, dataset.config.groups, None, dataset.scale, core, settings)


def _with_given(config: Config, given: _Given, inputs: Inputs) -> Config:
    if config.strategy == "retrain" and given.groups not in (None, 1):
        raise _no_groups(config, inputs)
    if given.positions is not None and config.policy == "regroup":
        raise WrongUse(option("policy", "regroup"), " chooses the groups itself: leave out ", option("groups_from"))
    if given.positions is None:
        if config.grouping == "given":
            raise WrongUse(option("grouping", "given"), " needs ", option("groups_from"), ": give it too")
        return config
    if (given.groups or 0) > MOST_GROUPS:
        raise DataRefused(
            f"{inputs.groups_from}: {given.groups} groups are too many: number the positions from 0 without gaps"
        )
    taken = {**(given.settings or {}), "groups": given.groups}
    return config.changed(**(taken if config.strategy != "retrain" else {"policy": taken["policy"]}))


def _no_groups(config: Config, inputs: Inputs) -> WrongUse:
    """Return the error for several groups where the strategy or model has one."""
    if "laser" in config.learner.strategies:
        return WrongUse(
            option("strategy", "retrain"),
            " trains everyone in one group: give ",
            option("groups_from"),
            " a source with one group",
        )
    return WrongUse(
        f"{config.model} has one group, and {inputs.groups_from} has several: give ",
        option("model", "nmf"),
        ", or leave out ",
        option("groups_from"),
    )


def _filtered(interactions: Interactions, config: Config, given: _Given) -> Interactions:
    if not config.min_interactions:
        return interactions
    core = given.core or CoreFilter.of(interactions, config.min_interactions)
    return core.apply(interactions)


def _check_groups(interactions: Interactions, config: Config, given: _Given, inputs: Inputs) -> None:
    users = interactions.users
    if given.positions is not None:
        _refuse_without_group(sum(user not in given.positions for user in users), len(users), inputs)
    elif config.groups > len(users) and config.grouping != "independent":
        raise Refused(
            f"there are only {len(users)} users for {config.groups} groups: give ",
            option("groups", len(users)),
            " or fewer",
        )


def _refuse_without_group(missing: int, users: int, inputs: Inputs) -> None:
    if missing:
        raise DataRefused(
            f"{inputs.groups_from}: {missing} of the {users} users of the data have no group there: add them, or drop "
            "their rows from the data"
        )
