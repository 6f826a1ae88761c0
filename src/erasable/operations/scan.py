"""Scan: what a workspace holds of a person, what to look for once they are erased, and the search for it."""

import math
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.chain.checkpoints import CheckpointStore
from erasable.chain.dataset import (
    Dataset,
    State,
)
from erasable.data.columns import ANY_COLUMNS, ColumnNames, RememberedColumns
from erasable.data.ids import NONE_NEAR, NearIds
from erasable.data.interactions import Interactions
from erasable.data.readers import read_interactions
from erasable.data.sources import name_of
from erasable.data.values import Weights
from erasable.errors import Said, UnknownUser, WorkspaceError, WrongUse, option, said
from erasable.operations._scanning import remotely_clean
from erasable.operations._vocabulary import own_vocabulary, vocabulary_of
from erasable.operations.people import near_in
from erasable.operations.storage import Session, declared_ids
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.search_file import Erased, Search, Sought, read_search
from erasable.requests.opening import typed_in_elsewhere
from erasable.requests.request import Request
from erasable.requests.tokens import salt_of_code
from erasable.scan import (
    Follow,
    Held,
    Residue,
    Rows,
    Scan,
    Target,
    Vocabulary,
    naming,
    scan_contents,
    scan_folder,
    unfollowed,
)
from erasable.workspace.files import QUEUE_FILE, QUEUE_FILES
from erasable.workspace.workspace import Workspace

WrittenRow = tuple[str, str]
"""A dtype and bytes in hexadecimal, as the search file holds a row."""
PersonalRows = Callable[[str], tuple[NDArray[Any], ...]]
_SHOWN = 5
_HIDDEN = "…"
_OF_A_NAME = ("the name", "the link")
_FEATURES, _DECLARED = "item-features", "declared-items"


def held_of(requests: Sequence[Request], session: Session, state: State) -> list[Target]:
    """Return what is held now of the people and items that these requests name."""
    rows_of = _personal_rows(session.checkpoints, state)
    held = state.dataset.data_of({request.user for request in requests})
    places = held.users.positions([request.user for request in requests])
    return [
        # An array with the person's place, or an empty one for whoever holds nothing.
        Target(one.user, one.items, rows_to_search(_asked_for(one, held.at(place[place >= 0]))), rows_of(one.user))
        for one, place in zip(requests, places[:, np.newaxis], strict=True)
    ]


def to_search_for(
    requests: Sequence[Request], held: Sequence[Target], checkpoints: CheckpointStore, after: State
) -> tuple[Sought, ...]:
    """Return what to look for after an erasure; a personal row that has not changed is left out."""
    rows_of = _personal_rows(checkpoints, after)
    left = frozenset(one.user for one in requests if after.dataset.buckets.find(one.user) is not None)

    def stays(target: Target) -> bool:
        return _written(rows_of(target.user)) == _written(target.personal)

    return tuple(
        Sought(
            request_id=request.request_id,
            received=request.received.isoformat(timespec="seconds"),
            user=request.user,
            items=request.items,
            salt=salt_of_code(request.receipt_code or ""),
            reference=request.reference,
            rows=() if target.rows is None else _rows(target.rows),
            personal=() if request.user in left and stays(target) else _written(target.personal),
        )
        for request, target in zip(requests, held, strict=True)
    )


def names_that_go(before: State, after: State) -> tuple[str, ...]:
    """Return the names of checkpoints that no stage uses any more, including names from an earlier release."""
    stay = {link.fingerprint for link in after.chain}
    go = [link.fingerprint not in stay for link in before.chain]
    former = [link.fingerprint for place, link in enumerate(before.recorded) if place >= len(go) or go[place]]
    return tuple(sorted({link.fingerprint for link in before.chain} - stay | {*former}))


def items_that_go(before: Dataset, after: Dataset, declared: Collection[str] = ()) -> tuple[str, ...]:
    """Return the items that nobody has any more, without those that are declared."""
    gone = before.items.take(np.flatnonzero(after.items.positions_of(before.items.array) < 0))
    return tuple(sorted({*gone}.difference(after.kept_items or (), declared)))


def targets_of(erased: Erased) -> list[Target]:
    """Return what to search for; what belongs to the whole erasure is attached to the first person."""
    found = [_target(one) for one in erased.people]
    return [replace(one, texts=erased.texts, own_items=erased.own_items) for one in found[:1]] + found[1:]


def _target(sought: Sought) -> Target:
    users = pa.array([sought.user] * len(sought.rows), pa.string())
    items = pa.array([item for item, _, _ in sought.rows], pa.string())
    times = [math.nan if time is None else time for _, _, time in sought.rows]
    rows, _ = Interactions.from_columns(users, items, [rating for _, rating, _ in sought.rows], times)
    personal = (np.frombuffer(bytes.fromhex(content), dtype=kind) for kind, content in sought.personal)
    return Target(sought.user, sought.items, rows_to_search(rows), tuple(personal))


def rows_to_search(held: Interactions) -> Rows:
    """Return interactions in the form that a scan takes."""
    return Rows(held.items.array.take(held.item_index).to_pylist(), held.rating, held.time)


def held_ids(dataset: Dataset, asked: Collection[str] = (), declared: Sequence[str] = ()) -> Held:
    """Return the ids that a workspace holds: those in its data, of people who have asked, and of declared items."""
    kept = () if dataset.kept_items is None else (sorted(dataset.kept_items),)
    return Held(_HeldUsers(dataset, sorted(asked)), (dataset.items.array, *kept, *((declared,) if declared else ())))


@dataclass(frozen=True, eq=False)
class _HeldUsers:
    """The ids of users, bucket by bucket: they are read only if there is a hit to explain."""

    dataset: Dataset
    asked: Sequence[str]

    def __iter__(self) -> Iterator[Any]:
        """Yield the ids of each bucket, then those of people who have asked."""
        yield from (bucket.users.array for bucket in self.dataset.buckets)
        yield self.asked


def _asked_for(request: Request, held: Interactions) -> Interactions:
    if request.items is None:
        return held
    others = {held.items[number] for number in held.item_index.tolist()} - {*request.items}
    return held.without(pairs=[(request.user, item) for item in others])


def _rows(held: Rows) -> tuple[tuple[str, float, float | None], ...]:
    times = [math.nan] * len(held.items) if held.times is None else np.asarray(held.times).tolist()
    rows = zip(held.items, np.asarray(held.ratings).tolist(), times, strict=True)
    return tuple((item, rating, None if math.isnan(time) else time) for item, rating, time in rows)


def _personal_rows(checkpoints: CheckpointStore, state: State) -> PersonalRows:
    """Return a function that finds a user's trained rows; each checkpoint is read once."""

    def find(user: str) -> tuple[NDArray[Any], ...]:
        return tuple(state.trained_row(checkpoints, state.dataset.find(user)).values())

    return find


def _written(rows: Iterable[NDArray[Any]]) -> tuple[WrittenRow, ...]:
    return tuple((row.dtype.str, row.tobytes().hex()) for row in rows)


@dataclass(frozen=True)
class Found:
    """The outcome of a search."""

    clean: Search
    """The people of whom nothing is left."""
    scan: Scan | None
    """The scan that found nothing of them; none in memory, where there are no files."""
    places: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Where something is left of the others, in words, by request."""
    shown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same for pages, without anything that identifies those who are sought."""


def search_for(
    session: Session, search: Search, held: Dataset, follow: Follow = unfollowed, work: Work = QUIET_WORK
) -> Found:
    """Search every file but the search file, which is removed when the certificates are written.

    People of whom something is found are left out, until one scan finds nothing of the others. `follow` shows the
    progress of each scan.
    """
    if session.path is None:
        with follow(None):
            return Found(search, None)
    declared = declared_ids(session)  # perhaps since the erasure
    search = search.without_items(declared)
    held_there = replace(held_ids(held, declared=declared), declared=session.documents().preferences.issuers)
    sought = [target for erased in search.erasures for target in targets_of(erased)]
    searched = remotely_clean(session, sought, held_there.declared, work)
    look = _Look(session, session.path, held_there, vocabulary_of(held), follow, searched)
    places, shown = dict[str, str](), dict[str, tuple[str, ...]]()
    clean = search
    try:
        while True:
            scan = look(clean)
            if not scan.residues:
                return Found(clean, scan, places, shown)
            blamed = _blamed(look, clean, scan.residues)
            places |= {request_id: describe_residues(session, residues) for request_id, residues in blamed.items()}
            shown |= places_shown(search, blamed)
            clean = clean.without(blamed)
            if not clean.erasures:
                return Found(clean, None, places, shown)
    except WorkspaceError as error:
        unsearched = f"not every file could be searched ({error})"
        return Found(clean.of(()), None, places | {one.request_id: unsearched for one in clean.people}, shown)


def describe_residues(session: Session, residues: Sequence[Residue]) -> str:
    """Say where something is left."""
    named = "; ".join(f"{residue.file} ({residue.place})" for residue in residues[:_SHOWN])
    where = f"{len(residues)} places still hold the person: {named}"
    return said(where, _queue_hint(session, residues), _items_hint(session, residues))


def places_shown(search: Search, found: Mapping[str, Sequence[Residue]]) -> dict[str, tuple[str, ...]]:
    """Return where something is left, by request; parts that would identify those who are sought are hidden."""
    few = {request_id: [*dict.fromkeys(residues)][:_SHOWN] for request_id, residues in found.items()}
    targets = [target for erased in search.erasures for target in targets_of(erased)]
    parts = {part for residues in few.values() for one in residues for part in (*one.file.split("/"), one.place)}
    hidden = naming(parts, targets, own_vocabulary())

    def shown(residue: Residue) -> str:
        *folders, name = [_HIDDEN if part in hidden else part for part in residue.file.split("/")]
        file = "/".join([*folders, _HIDDEN if residue.place.startswith(_OF_A_NAME) else name])
        return f"{file} ({_HIDDEN if residue.place in hidden else residue.place})"

    return {request_id: tuple(dict.fromkeys(map(shown, residues))) for request_id, residues in few.items()}


@dataclass(frozen=True)
class _Look:
    """Searches every file for people, except the search file and sealed files."""

    session: Session
    path: Path
    held: Held
    vocabulary: Vocabulary
    follow: Follow
    clean: frozenset[str]

    def __call__(self, search: Search) -> Scan:
        """Scan for these people."""
        targets = [target for erased in search.erasures for target in targets_of(erased)]
        skip, sealed = self.session.pending_files, self.session.sealed_files
        found = scan_folder(
            self.path,
            targets,
            self.vocabulary,
            skip=skip,
            held=self.held,
            sealed=sealed,
            clean=self.clean,
            follow=self.follow,
        )
        return with_queue(found, self.path, targets, self.vocabulary, self.held.declared)


def with_queue(
    scan: Scan, path: Path, targets: Sequence[Target], vocabulary: Vocabulary, declared: tuple[str, ...]
) -> Scan:
    """Return a scan of a workspace, extended by its queue if that is in Postgres."""
    typed_in = typed_in_elsewhere(path)
    if typed_in is None:
        return scan
    found = scan_contents({QUEUE_FILE: typed_in}, targets, vocabulary, declared=declared)
    return replace(scan, residues=(*scan.residues, *found))


def _blamed(look: _Look, search: Search, residues: Sequence[Residue]) -> dict[str, list[Residue]]:
    """Return whose residues these are, by request.

    An id names its person. Names of checkpoints and items that are gone belong to everyone in the erasure. Values name
    nobody, so the people are searched for in halves.
    """
    named: dict[str, list[Residue]] = {}
    for residue in residues:
        for request_id in _owners(search, residue):
            named.setdefault(request_id, []).append(residue)
    people = [one.request_id for one in search.people]
    if named or len(people) == 1:
        return named or {people[0]: [*residues]}
    halves = (people[: len(people) // 2], people[len(people) // 2 :])
    for part in (search.of(half) for half in halves):
        found = look(part).residues
        named |= _blamed(look, part, found) if found else {}
    return named or {one: [*residues] for one in people}


def _owners(search: Search, residue: Residue) -> list[str]:
    """Return the requests that a residue belongs to, judged by the texts in it."""
    of, found = frozenset(residue.of), list[str]()
    for erased in search.erasures:
        whole = not of.isdisjoint(erased.texts) or not of.isdisjoint(erased.own_items)
        found += [one.request_id for one in erased.people if whole or one.user in of]
    return found


def _items_hint(session: Session, residues: Sequence[Residue]) -> str:
    """Return what to do if something was found in what is declared of items, whose files must not be removed."""
    place, files = shlex.quote(str(session.path)), [residue.file for residue in residues]
    if any(file.startswith(_FEATURES) for file in files):
        remedy = Said("learn_more(None, items=TABLE)", f"erasable learn --more --into {place} --items FILE")
    elif any(file.startswith(_DECLARED) for file in files):
        remedy = Said("set_items(TABLE)", f"erasable items {place} --set FILE")
    else:
        return ""
    return said(" (what is declared of items goes by declaring a table without it: ", remedy, ")")


def _queue_hint(session: Session, residues: Sequence[Residue]) -> str:
    """Return what to do if something was found in the queue, which must not be removed."""
    if not any(residue.file in QUEUE_FILES for residue in residues):
        return ""
    place = shlex.quote(str(session.path))
    return (
        " (leave the queue where it is: an open request or a remark about the person goes when erasable serve runs, "
        f"which finishes this; a token's label that names the person is changed by erasable token rename {place} "
        f"NUMBER LABEL, with the number that erasable token list {place} shows)"
    )


@dataclass(frozen=True)
class PersonScan(Scan):
    """A scan of a workspace for one person."""

    near: NearIds = NONE_NEAR
    """If nothing is held under the id: how many ids are held that differ from it only a little."""

    @property
    def clean(self) -> bool:
        """Whether nothing was found, and no id is held that is most likely the same person."""
        return not self.residues and not self.near.held


def scan(
    folder: Path, user: str, data: str | Path | None = None, columns: ColumnNames = ANY_COLUMNS, work: Work = QUIET_WORK
) -> PersonScan:
    """Search every file of a workspace for a person, who may be held there or not.

    The person's rows, from the workspace or from a table that still has them, are searched for by value too; without
    either only the id is known. Ids that differ from it only a little are counted. Files that a killed command left are
    searched as well, so none is removed before.
    """
    if not user.strip():
        raise WrongUse("no user is named: give ", option("user"), " an id, exactly as in the data")
    with Workspace.reading(folder, sweeping=False) as workspace:
        dataset = workspace.state().dataset
        documents = workspace.documents()
        columns = RememberedColumns(**columns.given(), remembered=dict(documents.preferences.columns))
        rows = None if data is None else _rows_in(data, user, columns, dataset.config.weights)
        asked, declared = read_search(documents.pending).users, declared_ids(workspace)
        held = replace(held_ids(dataset, asked, declared), declared=documents.preferences.issuers)
        targets = [_target_of_user(workspace, user, rows)]
        vocabulary, follow = vocabulary_of(dataset), partial(work.reporter.track, "scanning")
        clean = remotely_clean(workspace, targets, held.declared, work)
        found = scan_folder(folder, targets, vocabulary, held=held, clean=clean, follow=follow)
        found = with_queue(found, folder, targets, vocabulary, held.declared)
        return PersonScan(**vars(found), near=near_in(dataset, user))


def _rows_in(data: str | Path, user: str, columns: ColumnNames, weights: Weights | None) -> Interactions:
    rows = read_interactions(data, columns, fewest_users=1, weights=weights).interactions.of_users([user])
    if not len(rows):
        raise UnknownUser(
            f"{name_of(data)} holds nothing about the user {user!r}: check the id, or leave out ", option("data")
        )
    return rows


def _target_of_user(workspace: Workspace, user: str, rows: Interactions | None) -> Target:
    state = workspace.state()
    try:
        place = state.dataset.find(user)
    except UnknownUser:
        return Target(user, rows=None if rows is None else rows_to_search(rows))
    personal = state.trained_row(workspace.checkpoints, place)
    held = state.dataset.data_of([user]) if rows is None else rows
    return Target(user, rows=rows_to_search(held), personal=tuple(row.copy() for row in personal.values()))
