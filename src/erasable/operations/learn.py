"""Learn from a file or table, or learn more: the result is the same as learning from everything at once."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from erasable.chain.arrangement import grown
from erasable.chain.chain import carry_out_schedule, made_elsewhere, scheduled
from erasable.chain.dataset import (
    Dataset,
    State,
    no_interactions,
)
from erasable.chain.plan import Plan, carry_out, plan_change
from erasable.chain.settings import SPARSE, SPARSE_BELOW, Config
from erasable.data.columns import OF_WEIGHTS, ColumnNames, RememberedColumns, column_option
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.data.readers import ReadResult
from erasable.errors import DataRefused, NotReproducible, Refused, Said, WrongUse, option, said
from erasable.models import calls
from erasable.models.base import Arrays
from erasable.models.registry import BUILT_IN, make_model
from erasable.operations.claims import is_left
from erasable.operations.declared_items import also_declaring, declare_held
from erasable.operations.do_not_learn import OpenList, beginning, open_list_of, readmitting, remember
from erasable.operations.prepare import (
    NO_INPUTS,
    Inputs,
    Prepared,
    Read,
    declared_catalogue,
    prepare,
    read_source,
    refuse_other_times,
    risky_users,
    with_new_features,
)
from erasable.operations.recording import InputFacts, first_documents, readmission_facts, remembering, version_facts
from erasable.operations.storage import Session, Storage, resuming, upgrading
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.do_not_learn import NONE_LISTED, ListedCount
from erasable.proof.log import add_record, records_of
from erasable.proof.search_file import read_search
from erasable.wording import counted, listed, percentage
from erasable.workspace.manifest import Preferences, Stamp
from erasable.workspace.workspace import Workspace

_BYTES_PER_USER = 32
_BYTES_PER_INTERACTION = 8
_NOTHING = 1e-6
_NOBODY_SHAPES = said(
    "nobody shapes the shared parameters: give a larger ", option("anchors"), ", or a higher ", option("risk_threshold")
)
_VANISHED = said(
    "next to nothing was learned from so little data: give a smaller ", option("regularisation"), ", like 1"
)


@dataclass(frozen=True)
class Learned(InputFacts):
    """What was learned, and how long training took."""

    users: int
    items: int
    interactions: int
    groups: int
    seconds: float
    held_out: int
    suppressed: int
    """How many people and single interactions were left out because they are on the do-not-learn list."""
    left_out: ListedCount = NONE_LISTED
    """The same, people and interactions apart."""
    readmitted: int = 0
    """How many people came back who were on that list."""
    notes: tuple[str, ...] = ()
    """What is worth knowing about the ids, about weights, and about that list."""


def learn(
    source: Any,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    into: Path,
    config: Config,
    inputs: Inputs = NO_INPUTS,
    work: Work = QUIET_WORK,
) -> Learned:
    """Learn from a file or table into a new workspace; if anything fails nothing is left behind."""
    with Workspace.creating(into, inputs.readable_by_group) as workspace:
        return learn_into(workspace, source, config, inputs, work)


def learn_into(session: Session, source: Any, config: Config, inputs: Inputs, work: Work) -> Learned:  # noqa: ANN401
    """Learn into a session that is open for writing."""
    began = time.perf_counter()
    with beginning(session, inputs.listing) as open_list:
        return _learned(
            session, prepare(source, config, inputs, work, open_list.entries, session), open_list, inputs, work, began
        )


def _learned(
    session: Session, prepared: Prepared, open_list: OpenList, inputs: Inputs, work: Work, began: float
) -> Learned:
    dataset = prepared.dataset
    if not dataset.counts.learned.any():
        work.reporter.doubt(_NOBODY_SHAPES)
    session.refuse_if_full(_room_for(dataset))
    schedule = scheduled(dataset)
    with work.tasks_of(session) as executor, work.training("learning", schedule.visits) as effort:
        state = carry_out_schedule(schedule, dataset, session.checkpoints, effort, executor=executor)
    if _vanished(session.checkpoints.get(state.stages[-1].fingerprint).parameters.shared):
        work.reporter.doubt(_VANISHED)
    with work.reporter.track("saving"):
        stamp = Stamp.after(0)
        documents = first_documents(state, stamp, len(inputs.readmit))
        # All ids count as whole numbers until a table says otherwise.
        preferences = Preferences(
            readable_by_group=inputs.readable_by_group, users_are_numbers=True, items_are_numbers=True
        )
        preferences = open_list.remembered_by(remembering(preferences, prepared.source), session.path)
        with readmitting(session, open_list, prepared.readmitted):
            documents = replace(documents, preferences=preferences)
            session.commit(state, also_declaring(documents, None, inputs.items, stamp), stamp)
    return Learned(
        users=dataset.users,
        items=len(dataset.items),
        interactions=dataset.interactions,
        groups=dataset.group_count,
        seconds=time.perf_counter() - began,
        held_out=dataset.counts.held_out,
        suppressed=prepared.suppressed.total,
        left_out=prepared.suppressed,
        readmitted=len(inputs.readmit),
        notes=(*prepared.source.notices, *notices_of(dataset), *open_list.notes),
        **vars(InputFacts.of(prepared.source, dataset)),
    )


def notices_of(dataset: Dataset) -> tuple[str, ...]:
    """Return what to say about model, split and density."""
    return (*_about_model(dataset), *_about_split(dataset), *_about_density(dataset))


def _about_model(dataset: Dataset) -> tuple[str, ...]:
    """Return a notice if the model uses no weights or features, although there are some."""
    config, said = dataset.config, list[str]()
    if config.weighed and not config.learner.uses_weights:
        using = listed(sorted(name for name, model in BUILT_IN.items() if model.uses_weights))
        said.append(f"the model {config.model} uses no weights: each pair counts once; {using} use them")
    if dataset.features is not None and not config.learner.uses_features:
        using = listed(sorted(name for name, model in BUILT_IN.items() if model.uses_features))
        said.append(f"the model {config.model} uses no features of items; {using} use them")
    values = dataset.features_at(0)
    if values is not None:
        named = listed([*(config.features or {})])
        said.append(f"features of items: {len(values.users):,} values of {named} that several items have")
    said += _about_items_of_nobody(dataset) if config.learner.uses_features else []
    return tuple(said)


def _about_items_of_nobody(dataset: Dataset) -> list[str]:
    """Return a notice if there are features and nobody has most of the items, as in a list of all books in print."""
    items, had = len(dataset.items), int(np.count_nonzero(dataset.counts.trained))
    if dataset.features is None or items - had <= had:
        return []
    why = "they take places among others' nearest items"
    return [f"nobody has {items - had:,} of {items:,} items, and {why}: leave what is not sold out of the table"]


def _about_split(dataset: Dataset) -> tuple[str, ...]:
    """Return a notice if a split by time holds out nothing, or everything that it may."""
    since, held_out = dataset.config.own.split_time, dataset.counts.held_out
    if since is None or 0 < held_out < dataset.interactions - dataset.users:
        return ()
    what = f"every interaction is at or after {since}, and each person keeps one" if held_out else ""
    what = what or f"nothing is held out: no interaction is at or after {since}, or people have only one"
    return (
        said(f"{what}: check ", option("split_time"), " (times that are numbers are compared as seconds since 1970)"),
    )


def _about_density(dataset: Dataset) -> tuple[str, ...]:
    """Recommend the preset for sparse data; it is never taken by itself, so that nobody's leaving can change it."""
    pairs = dataset.users * len(dataset.items)
    share = dataset.interactions / pairs if pairs else 1.0
    better, settings = SPARSE.get(dataset.config.model, {}), dataset.config.learner.settings
    if share >= SPARSE_BELOW or not better or better.keys() & settings.model_fields_set:
        return ()
    there = f"only {percentage(share)} of all pairs of user and item are there: "
    return (said(there, option("preset", "sparse"), " may recommend better"),)


def _room_for(dataset: Dataset) -> int:
    """Return about how many bytes a workspace takes: shared parameters for each stage, trained rows, interactions."""
    model, seed = make_model(dataset.config), dataset.config.seed
    items, someone = dataset.items, Ids.of(["someone"])
    shared = calls.started(model, items, seed)
    solved = dataset.solves_rows
    row = {} if solved else calls.newcomers(model, calls.prepared(model, shared), someone, items, seed)
    each_stage, each_user = (sum(array.nbytes for array in arrays.values()) for arrays in (shared, row))
    users = (_BYTES_PER_USER + each_user) * dataset.users
    return each_stage * dataset.stages + users + _BYTES_PER_INTERACTION * dataset.interactions


def _vanished(shared: Arrays) -> bool:
    """Whether regularisation has shrunk all shared parameters to nothing."""
    return all(np.max(np.abs(array), initial=0) < _NOTHING for array in shared.values())


_FOR_SCALE = said("for another scale learn everything again into another folder, with ", option("rating_scale"))


@dataclass(frozen=True)
class _Listed:
    """The do-not-learn list, what was read without the people on it, and how many come back."""

    open_list: OpenList
    read: Read
    people: int
    taken_in: str | None = None
    """The id of these rows for the log."""
    items: pa.Table | None = None
    """New attributes of items."""


@dataclass(frozen=True)
class LearnedMore(InputFacts):
    """Sizes after learning more, what of them is new, and what it cost."""

    users: int
    items: int
    interactions: int
    groups: int
    seconds: float
    users_added: int
    items_added: int
    items_unknown: int
    """How many items no stage has learned yet, so that they are recommended to nobody."""
    interactions_added: int
    suppressed: int
    left_out: ListedCount
    """How many people and single interactions were left out because they are on the do-not-learn list."""
    readmitted: int
    """How many people came back who were on that list."""
    notes: tuple[str, ...]
    """What is worth knowing about the ids, about weights, and about that list."""
    stages_rerun: int
    stages_total: int
    cost_ratio: float


def learn_more(
    storage: Storage,
    source: Any,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    inputs: Inputs = NO_INPUTS,
    work: Work = QUIET_WORK,
    rerun: bool = False,
    taken_in: str | None = None,
) -> LearnedMore:
    """Add data to a recommender; settings, groups and rating scale stay. If anything fails nothing changes.

    In another numeric environment than the one that learned, this is refused; with `rerun` everything is trained again.
    `taken_in` is a random id of these rows for the log, so that `has_learned` can tell whether they are in.
    """
    began = time.perf_counter()
    if inputs.groups_from is not None:
        raise WrongUse("existing users keep their group: leave out ", option("groups_from"))
    with storage.writing() as session:
        refuse_unready(storage, session, rerun)
        before, open_list = _earlier(session, rerun).dataset, open_list_of(session, inputs.listing, erasing=False)
        renewed = with_new_features(before, inputs)
        read = _read_more(source, inputs, before, session, open_list, work)
        after = _grown(renewed, read, inputs, work) if len(read.interactions) else renewed
        planned = plan_change(_earlier(session, rerun), after)
        if after is not before:
            listing = _Listed(open_list, read, len(inputs.readmit), taken_in, inputs.items)
            _learn(session, after, planned, listing, work, rerun)
        else:  # everyone in the table is on the list, or the features are those that are held
            remember(session, open_list)
            declare_held(session, inputs.items)
    return LearnedMore(
        users=after.users,
        items=len(after.items),
        interactions=after.interactions,
        groups=after.group_count,
        seconds=time.perf_counter() - began,
        users_added=after.users - before.users,
        items_added=len({*after.items} - {*before.items}),
        items_unknown=items_unknown(after),
        interactions_added=after.interactions - before.interactions,
        suppressed=read.suppressed.total,
        left_out=read.suppressed,
        readmitted=len(inputs.readmit),
        notes=(*read.source.notices, *read.notes, *_about_model(after), *open_list.notes),
        stages_rerun=planned.stages_rerun,
        stages_total=planned.stages_total,
        cost_ratio=planned.cost_ratio,
        **vars(InputFacts.of(read.source, after)),
    )


def items_unknown(dataset: Dataset) -> int:
    """Return how many items no stage has learned yet."""
    return int(np.count_nonzero(~dataset.known_to_some & (dataset.counts.trained > 0)))


def has_learned(session: Session, taken_in: str) -> bool:
    """Whether rows were learned that `learn_more` was given with this id."""
    return any(record.get("taken_in") == taken_in for record in records_of(session.documents().records()))


def _read_more(
    source: Any,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    inputs: Inputs,
    before: Dataset,
    session: Session,
    open_list: OpenList,
    work: Work,
) -> Read:
    """Read a table of further rows; without one there must be new features of items."""
    if source is not None:
        return read_further(source, inputs, before, session, open_list, work)
    if inputs.items is None or before.features is None:
        raise WrongUse(
            "there is nothing to learn more from: give interactions, or where features are learned from, new items"
        )
    nothing = ReadResult(no_interactions(before.items), (), rated=before.scale.low < before.scale.high)
    return Read(nothing.interactions, None, NONE_LISTED, nothing.rated, nothing)


def read_further(
    source: Any,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    inputs: Inputs,
    before: Dataset,
    session: Session,
    open_list: OpenList,
    work: Work,
) -> Read:
    """Read a table as the first one was read: with its columns, scale and weights; refuse one that is unlike it.

    What vanished and is not certified yet is left out: while it is held, a search would find it.
    """
    as_before = _as_before(inputs, session)
    _refuse_other_weights(inputs.columns, before)
    read = read_source(source, as_before, before.scale, work, 1, _FOR_SCALE, open_list.entries, before.config.weights)
    _refuse_unlike(read, before, as_before)
    return _without_uncertified(read, session)


def _without_uncertified(read: Read, session: Session) -> Read:
    """Leave out people and interactions that a sync forgot and that could not be certified."""
    erasures = read_search(session.documents().pending).erasures
    waiting = [one for erased in erasures if erased.may_return for one in erased.people if one.found is not None]
    if not waiting:
        return read
    whole = {one.user for one in waiting if one.items is None}
    pairs = [(one.user, item) for one in waiting for item in one.items or ()]
    left = read.interactions.without(users=whole, pairs=pairs)
    gone = len(read.interactions) - len(left)
    if not gone:
        return read
    left = left.with_items(left.items.take(np.unique(left.item_index)))
    note = said(
        f"left out {counted(gone, 'interaction')} of people who are forgotten and not certified yet: finish with ",
        resuming(session.path),
        ", then they can come back",
    )
    return replace(read, interactions=left, notes=(note,))


def _as_before(inputs: Inputs, session: Session) -> Inputs:
    """Return inputs that read the same columns as before, unless others are named."""
    remembered = dict(session.documents().preferences.columns)
    return replace(inputs, columns=RememberedColumns(**inputs.columns.given(), remembered=remembered))


def refuse_unready(storage: Storage, session: Session, rerun: bool) -> None:
    """Refuse while an erasure is unfinished; one that can't be certified is set aside and does not block learning."""
    if is_begun(session) or any(map(is_left, storage.asked())):
        raise Refused("an erasure is not finished: finish it with ", resuming(session.path), ", then learn more")
    if not rerun:
        refuse_elsewhere(session)


def is_begun(session: Session) -> bool:
    """Whether someone is erased and not searched for yet, or was accepted by an earlier release."""
    search = read_search(session.documents().pending)
    return bool(search.accepted) or any(one.found is None for one in search.people)


def refuse_elsewhere(session: Session) -> None:
    """Refuse what was learned in another numeric environment."""
    found = made_elsewhere(session.state())
    if found:
        raise NotReproducible(
            f"this was learned {found.how} ({found}): bring it here with ",
            upgrading(session),
            ", then learn more; or learn more there",
        )


def _refuse_other_weights(columns: ColumnNames, before: Dataset) -> None:
    """Refuse columns of weights, events or ratings where the first table had none."""
    weighed = before.config.weighed
    for role in ("rating",) if weighed else OF_WEIGHTS:
        if getattr(columns, role) is not None:
            what = "with weights" if weighed else "without weights"
            raise WrongUse(f"this was learned {what}: leave out ", column_option(role))
    if columns.event is not None and before.config.own.event_weights is None:
        raise WrongUse("this was learned without ", option("event_weights"), ": leave out ", column_option("event"))


def _refuse_unlike(read: Read, before: Dataset, inputs: Inputs) -> None:
    """Refuse a table that lacks ratings, weights or times, or has risks, unlike the first one."""
    named, remembered = inputs.columns.given(), getattr(inputs.columns, "remembered", {})
    needed = [role for role in OF_WEIGHTS if role in (remembered if named.keys().isdisjoint(OF_WEIGHTS) else named)]
    for role in needed or OF_WEIGHTS[:1]:
        if before.config.weighed and role not in read.source.taken.columns:
            raise DataRefused(
                f"there is no {role}, and this was learned with weights: name it with ", column_option(role)
            )
    if not read.rated and before.scale.low < before.scale.high:
        raise DataRefused(
            f"there is no rating, and ratings go from {before.scale} here: name one with ", column_option("rating")
        )
    refuse_other_times(before.config, read.source.taken.time_form)
    if read.risk is not None and before.config.risk_threshold is None:
        given = Said("risk=", "--risk-column")
        raise WrongUse("this was learned without ", option("risk_threshold"), ": leave out ", given)


def _grown(before: Dataset, read: Read, inputs: Inputs, work: Work) -> Dataset:
    risky = risky_users(read.risk, before.config) if read.risk is not None else ()
    return grown(with_catalogue(before, read.interactions, inputs), read.interactions, work.grouping, risky)


def with_catalogue(before: Dataset, coming: Interactions, inputs: Inputs) -> Dataset:
    """Return the dataset with its new catalogue: a declared one may be extended.

    A catalogue that 0.1 froze counts as declared until `upgrade`, and as in 0.1 new items join it.
    """
    if before.catalogue is None and inputs.catalogue is not None:
        raise WrongUse(
            "this was learned without ",
            option("catalogue"),
            ", so items follow the people: leave it out, or learn everything again into another folder with ",
            option("catalogue"),
        )
    if before.catalogue is None:
        return before
    if inputs.catalogue is not None:
        return replace(before, catalogue=before.catalogue.grown(declared_catalogue(inputs.catalogue)[0].items))
    if before.catalogue.declared:
        return before
    return replace(before, catalogue=before.catalogue.grown(coming.items))


def _earlier(session: Session, rerun: bool) -> State:
    """Return the current state; with `rerun` as if no stage were trained."""
    return session.state().untrained() if rerun else session.state()


def _learn(session: Session, after: Dataset, planned: Plan, listed: _Listed, work: Work, rerun: bool) -> None:
    """Train the stages that changed, or all, and make the result current."""
    state = _earlier(session, rerun)
    session.refuse_if_full(session.size)
    with work.tasks_of(session) as executor, work.training("learning", planned.samples) as effort:
        new = carry_out(planned, state, after, session.checkpoints, effort, executor)
    with work.reporter.track("saving"):
        documents, stamp = session.documents(), Stamp.after(session.stamp.version)
        facts = {**version_facts(new, stamp), **readmission_facts(listed.people)}
        facts |= {} if listed.taken_in is None else {"taken_in": listed.taken_in}
        read = listed.read.source
        preferences = remembering(documents.preferences, read) if read.taken.columns else documents.preferences
        preferences = listed.open_list.remembered_by(preferences, session.path)
        sought = read_search(documents.pending).made_again(planned.rerun)
        log = add_record(documents.log, "learn more", facts)
        more = replace(documents, log=log, preferences=preferences, pending=sought.encoded())
        with readmitting(session, listed.open_list, listed.read.readmitted):
            session.commit(new, also_declaring(more, session.declared_items(), listed.items, stamp), stamp)
