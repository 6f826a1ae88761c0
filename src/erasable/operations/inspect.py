"""Inspect a recommender: its quality, what it holds about a person, groups, status and certificates."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.chain.dataset import Dataset
from erasable.data.columns import ANY_COLUMNS, ColumnNames, RememberedColumns, column_option
from erasable.data.interactions import Interactions, RatingScale
from erasable.data.item_attributes import ITEM
from erasable.data.readers import read_interactions
from erasable.data.sources import name_of
from erasable.data.values import TimeForm, Weights, text_of_time
from erasable.errors import Refused, Said, UnknownRequest, WorkspaceError, WrongUse, option
from erasable.evaluation.findable import Findable
from erasable.evaluation.metrics import LIKED
from erasable.evaluation.protocols import Protocol, measured_people, rank_people
from erasable.evaluation.slices import ACTIVITY, POPULARITY, assess, newcomers_note
from erasable.evaluation.utility import Utility, all_metrics, longest, metrics_named
from erasable.grouping.balanced_clustering import plain_k_means
from erasable.grouping.groups import (
    Cohesion,
    check_room,
    cohesion_between_rows,
    cohesion_of_groups,
    label_users,
    user_space,
)
from erasable.grouping.points import MOST_PAIRS, Labels, Points, bipartite_graph, most_pairs
from erasable.grouping.registry import BY_VECTORS, GroupingName, GroupingSettings
from erasable.operations._evaluating import ranked_elsewhere
from erasable.operations.claims import left_to_finish
from erasable.operations.declared_items import DeclaredItems
from erasable.operations.do_not_learn import list_facts
from erasable.operations.people import not_served, telling_near_ids
from erasable.operations.storage import Session, Storage, pending_people, queue_fault, suppressed_people
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.certificate import Certificate, read_certificate
from erasable.proof.checking import records_about, signing_public_key
from erasable.proof.log import head_of
from erasable.proof.search_file import read_search
from erasable.workspace.manifest import Stamp

COMPARED: tuple[GroupingName, ...] = ("random", "bkm", "cbkm", "cbkm-near")


@dataclass(frozen=True)
class GroupFacts:
    """One group of the chain, in its order."""

    position: int
    """From 1: the group that is trained first."""
    users: int
    interactions: int
    cohesion: float | None
    """The paper's ρ; None if it is unknown since someone was forgotten."""
    cohesion_error: float | None
    """Its standard error; 0 if all pairs of users were counted."""


@dataclass(frozen=True)
class HeldInteraction:
    """One interaction of a person."""

    item_id: str | int
    rating: float
    time: float | str | None
    """As it was read: a number, or ISO 8601."""
    held_out: bool


@dataclass(frozen=True)
class Holding:
    """Everything that is held about a person."""

    user_id: str | int
    group: int
    """The position of the person's group, from 1."""
    interactions: tuple[HeldInteraction, ...]
    personal_rows: dict[str, list[float]]
    """As a stage trained them; rows that are solved on demand are not stored."""
    suppressed: bool | None = None
    """Whether the person has asked to be erased and so gets no recommendations; None if that can't be read."""


def evaluate(
    storage: Storage,
    test: Any = None,  # noqa: ANN401 - a path or any table that data.read_interactions takes
    columns: ColumnNames = ANY_COLUMNS,
    work: Work = QUIET_WORK,
    protocol: Protocol = "whole-catalogue",
    everyone: bool = False,
    metrics: Sequence[str] | None = None,
    by: str | None = None,
) -> Utility:
    """Measure recommendations on the holdout, or on a table or file, by a protocol (docs/reference/protocols.md).

    Of the holdout at most 10,000 people are measured, unless `everyone` is asked for. A table is read with the columns
    that were learned from, if it has them and no others are named. All metrics are measured if none are named. Slices
    are by activity, popularity, or a column of the declared items. Rows of a table that are also learned from are a
    doubt; a table of nothing else is refused where what someone has in training is not ranked.
    """
    chosen = all_metrics(protocol) if metrics is None else metrics_named(metrics, protocol)
    with storage.reading() as session:
        state, findable = session.state(), None
        attributes = None if by in (None, ACTIVITY, POPULARITY) else _attributes(session, by or "")
        if test is not None:
            columns = RememberedColumns(**columns.given(), remembered=dict(session.documents().preferences.columns))
            dataset, weights = state.dataset, state.dataset.config.weights
            scale = dataset.scale if protocol == "held-out-only" and weights is None else None
            held_out = _test_set(test, columns, scale, weights)
            findable = Findable.of(dataset, held_out)
            if protocol == "whole-catalogue":
                findable.refuse_what_is_learned()
        elif state.dataset.counts.held_out:
            held_out = state.dataset.held_out if everyone else measured_people(state.dataset)
        else:
            test_set = Said("evaluate(TABLE)", "--test FILE")
            raise Refused("nothing was held out: learn with ", option("holdout", 0.1), ", or give ", test_set)
        with work.reporter.track("evaluating"):
            if work.cluster is not None:
                rankings = ranked_elsewhere(session, held_out, protocol, longest(chosen), work.cluster)
            else:
                people = state, session.checkpoints, held_out, work.threads
                rankings = rank_people(*people, (protocol,), longest(chosen))[protocol]
            found = assess(state.dataset, rankings, protocol, chosen, by, attributes)
    if findable is not None:
        return replace(found, doubts=findable.doubts(protocol), notes=findable.notes())
    return replace(found, notes=newcomers_note(rankings)) if state.dataset.config.splitting.name == "time" else found


def _attributes(session: Session, column: str) -> dict[int, str]:
    """Return the value of a declared attribute, as text, of each item that has one."""
    declared = DeclaredItems(session.declared_items())
    if column not in declared.attributes:
        there = f"the declared attributes are {', '.join(declared.attributes)}" if declared.attributes else ""
        items = Said("set_items(TABLE)", "erasable items DIR --set FILE")
        remedy: tuple[str, ...] = (there,) if there else ("declare attributes of items with ", items)
        raise WrongUse(f"slices are by {ACTIVITY}, {POPULARITY} or an attribute, and not by {column!r}: ", *remedy)
    known = session.state().dataset.items.positions(declared.table[ITEM].to_pylist()).tolist()
    values = declared.table[column].cast(pa.string()).to_pylist()
    return {place: text for place, text in zip(known, values, strict=True) if place >= 0 and text is not None}


def _test_set(
    source: Any,  # noqa: ANN401 - a path or a table
    columns: ColumnNames,
    scale: RatingScale | None,
    weights: Weights | None,
) -> Interactions:
    """Read a test set; with a scale its ratings matter: all must be on the scale, and one must be high."""
    found = read_interactions(source, columns, scale, fewest_users=1, weights=weights).interactions
    if scale is not None and np.max(found.rating) < LIKED * scale.high:
        raise Refused(
            f"no rating in {name_of(source)} reaches 4/5 of {scale.high:g}, so there is nothing to find: name "
            "the column of ratings with ",
            column_option("rating"),
            ", or take another ",
            option("protocol"),
        )
    return found


def show(storage: Storage, user: str) -> Holding:
    """Return everything that is held about a person (GDPR Art. 15)."""
    with storage.reading() as session:
        state = session.state()
        with telling_near_ids(state.dataset, [user]):
            place = state.dataset.find(user)
        held, bucket = state.dataset.data_of([user]), state.dataset.buckets[place.bucket]
        test_items = set(bucket.held_out.of_users([user]).item_index.tolist())
        times = _shown_times(held, session.documents().preferences.time_kind)
        interactions = tuple(
            HeldInteraction(held.items[int(item)], float(rating), time, int(item) in test_items)
            for item, rating, time in zip(held.item_index, held.rating, times, strict=True)
        )
        rows = state.trained_row(session.checkpoints, place)
        personal = {name: row.tolist() for name, row in rows.items()}
        suppressed = _suppressed(storage, session)
    return Holding(user, place.group + 1, interactions, personal, None if suppressed is None else user in suppressed)


def _shown_times(held: Interactions, kind: TimeForm | None) -> list[float | str | None]:
    """Return times as they were read."""
    if held.time is None:
        return [None] * len(held)
    return [None if math.isnan(time) else text_of_time(float(time), kind) for time in held.time]


def groups(storage: Storage, work: Work = QUIET_WORK) -> list[GroupFacts]:
    """Return the groups of the chain in their order.

    Cohesion is the one that decided the order, if it did; else it is computed now, between rating rows. For groupings
    by vectors it is unknown after someone was forgotten, since vectors are not kept.
    """
    with storage.reading() as session:
        dataset = session.state().dataset
        known: Sequence[Cohesion | None] = dataset.cohesion
        if not any(known) and dataset.config.grouping not in BY_VECTORS:
            with work.reporter.track("cohesion"):
                known = cohesion_between_rows(dataset.groups, dataset.scale, dataset.config.seed, work.threads)
        known = known or (None,) * dataset.group_count
        return [
            GroupFacts(position, size.users, len(size), *(cohesion[:2] if cohesion else (None, None)))
            for position, (size, cohesion) in enumerate(zip(dataset.group_sizes(), known, strict=True), start=1)
        ]


class LoadedVersion(NamedTuple):
    """What a serving process has in memory: a version, its dataset, and who is not served."""

    stamp: Stamp
    dataset: Dataset
    suppressed: frozenset[str]


def status(storage: Storage, known: LoadedVersion | None = None) -> dict[str, Any]:
    """Return sizes, settings, erasures and version; what is in memory already is not read again."""
    with storage.reading() as session:
        is_current, documents = known is not None and known.stamp == session.stamp, session.documents()
        dataset = known.dataset if known and is_current else session.state().dataset
        config = dataset.config
        waiting = _suppressed(storage, session) if known is None else known.suppressed
        suppressed = None if waiting is None else waiting | not_served(dataset, pending_people(session))
        return {
            "users": dataset.users,
            "items": len(dataset.items),
            "interactions": dataset.interactions,
            "held_out": dataset.counts.held_out,
            "model": config.model,
            "strategy": config.strategy,
            "rows": config.rows,
            "anchors": config.anchors,
            "grouping": config.grouping,
            "policy": config.policy,
            "groups": dataset.group_count,
            "rating_scale": str(dataset.scale),
            "features": [f"{name}={weight}" for name, weight in (config.features or {}).items()],
            "erasures": session.erasures,
            "version": session.stamp.version,
            "pending": len(read_search(documents.pending).users if known else _left_to_finish(storage, session)),
            "suppressed": None if suppressed is None else len(suppressed),
            "queue_fault": None if known else queue_fault(storage),
            "records": head_of(documents.log).number,
            "public_key": signing_public_key(documents),
            "do_not_learn": list_facts(session),
            "leftovers": list(session.leftovers),
        }


def _left_to_finish(storage: Storage, session: Session) -> frozenset[str]:
    """Return whose erasure is not finished; nobody if that can't be read."""
    try:
        return left_to_finish(storage, session)
    except WorkspaceError:
        return frozenset()


def _suppressed(storage: Storage, session: Session) -> frozenset[str] | None:
    """Return who is suppressed; None if that can't be read, so that a reader still gets the rest."""
    try:
        return suppressed_people(storage, session)
    except WorkspaceError:
        return None


def certificates_of(storage: Storage, request_ids: Collection[str]) -> dict[str, Certificate]:
    """Return the certificates of those requests that have one."""
    with storage.reading() as session:
        issued = session.issued()
        found = {one: issued[f"{one}.json"] for one in request_ids if f"{one}.json" in issued}
    return {request_id: read_certificate(content) for request_id, content in found.items()}


def erasure_records(storage: Storage, request_ids: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return what the log records of the erasures of some requests; certificates leave these details out."""
    with storage.reading() as session:
        return records_about(request_ids, session.documents())


def certificate_file(storage: Storage, name: str) -> bytes:
    """Return the file of a certificate, or of its page, as it was issued."""
    with storage.reading() as session:
        issued = session.issued()
        if name not in issued:
            raise UnknownRequest("there is no certificate of that request: it is issued when the erasure is done")
        return issued[name]


@dataclass(frozen=True, eq=False)
class GroupStudy:
    """The groups of a recommender beside those of other groupings: sizes, cohesion, and a map of the users."""

    grouping: str
    sizes: Mapping[str, NDArray[np.int64]]
    """Group sizes, largest first, by what made the groups (the paper's Appendix B.1)."""
    cohesion: Mapping[str, NDArray[np.float64]]
    """The cohesion ρ of each group, by grouping, all measured between rating rows (the paper's Appendix D.2)."""
    places: NDArray[np.float64]
    """Two coordinates of each user: the first two principal components of the `cbkm-near` vectors."""
    positions: Labels
    """The position of each user's group in the chain."""


def study_groups(storage: Storage, work: Work) -> GroupStudy:
    """Compare the groups of a recommender with those that other groupings make of its data."""
    with storage.reading() as session:
        dataset = session.state().dataset
        training = Interactions.merge(list(dataset.groups))
    if len(training.users) < 2:
        raise Refused("there are fewer than two users: nothing can be drawn")
    try:
        check_room(training, _settings("bkm", dataset))
    except Refused:  # its remedy is for learning
        many = f"{dataset.group_count:,} groups of {len(training.users):,} users and {len(training.items):,} items"
        instead = Said("see Recommender.groups()", "leave out --plot, and see the table")
        raise Refused(f"{many} are too many to be compared and drawn: ", instead) from None
    positions = _positions(dataset, training)
    names = _compared(training, dataset)
    spaces: dict[str, Points] = {name: _space(name, training, dataset, work) for name in names}
    with work.reporter.track("comparing groupings"):
        labels: dict[str, Labels] = {name: _labels(name, spaces[name], training, dataset, work) for name in names}
        compared = {**labels, dataset.config.grouping: positions}
        return GroupStudy(
            grouping=dataset.config.grouping,
            sizes=_sizes(spaces, positions, dataset, work),
            cohesion={name: _cohesion(spaces["bkm"], groups, work) for name, groups in compared.items()},
            places=_main_directions(spaces["cbkm-near"]),
            positions=positions,
        )


def _compared(training: Interactions, dataset: Dataset) -> tuple[GroupingName, ...]:
    """Return the groupings to compare with: those that don't take hours."""
    too_large = most_pairs(bipartite_graph(training, dataset.scale)) > MOST_PAIRS
    return tuple(name for name in COMPARED if not (too_large and name == "cbkm"))


def _positions(dataset: Dataset, training: Interactions) -> Labels:
    positions = np.empty(len(training.users), np.int64)
    for position, group in enumerate(dataset.groups):
        positions[training.users.positions(group.users.texts())] = position
    return positions


def _space(name: GroupingName, training: Interactions, dataset: Dataset, work: Work) -> Points:
    graph = bipartite_graph(training, dataset.scale)
    return user_space(graph, training.users, _settings(name, dataset), dataset.config.seed, work.grouping)


def _labels(name: GroupingName, space: Points, training: Interactions, dataset: Dataset, work: Work) -> Labels:
    return label_users(space, training, _settings(name, dataset), dataset.config.seed, work.threads)


def _settings(name: GroupingName, dataset: Dataset) -> GroupingSettings:
    return GroupingSettings(grouping=name, groups=dataset.group_count)


def _sizes(
    spaces: Mapping[str, Points], positions: Labels, dataset: Dataset, work: Work
) -> dict[str, NDArray[np.int64]]:
    groups, seed = dataset.group_count, dataset.config.seed
    plain = {"plain k-means on rating rows": "bkm", "plain k-means on vectors": "cbkm-near"}
    found = {name: plain_k_means(spaces[space], groups, seed, work.threads) for name, space in plain.items()}
    found[dataset.config.grouping] = positions
    return {name: np.sort(np.bincount(labels, minlength=groups))[::-1] for name, labels in found.items()}


def _cohesion(space: Points, labels: Labels, work: Work) -> NDArray[np.float64]:
    found = cohesion_of_groups(space, labels, int(labels.max()) + 1, 0, work.threads)
    return np.array([group.value for group in found])


def _main_directions(space: Points) -> NDArray[np.float64]:
    """Return the coordinates of points in the two directions of most variance (principal components)."""
    rows = space.values.reshape(space.size, space.width)
    centred = rows - rows.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return centred @ directions[:, [-1, -2]]
