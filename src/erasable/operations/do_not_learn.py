"""The do-not-learn list of a recommender: where it is, who is on it; and the receipts an erasure writes."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from erasable.errors import DiskFull, ErasableError, ListUnusable, Refused, WorkspaceError, WrongUse, option, said
from erasable.operations.storage import MemorySession, Session, Storage
from erasable.proof.do_not_learn import (
    ANOTHER_LIST,
    NO_LIST,
    Suppression,
    SuppressionList,
    add_requests,
    refuse_unwritable,
    remove_list,
    replace_entries,
    with_requests,
    write_list,
)
from erasable.proof.issuing import Receipt
from erasable.proof.search_file import IN_MEMORY, Erased, Places
from erasable.requests.request import Request
from erasable.workspace import files
from erasable.workspace.manifest import Preferences

_OTHERWISE = said("name other places with ", ANOTHER_LIST, ", or do without with ", NO_LIST)
_EARLIER = "whoever was erased before can't be recognised: take them out of your files, or forget them again"


@dataclass(frozen=True)
class Listing:
    """What the caller says about the do-not-learn list: another place for it, or that none is kept."""

    places: Suppression | None = None
    without: bool = False

    @property
    def is_said(self) -> bool:
        """Whether the caller says anything."""
        return self.without or self.places is not None


@dataclass(frozen=True)
class Outside:
    """What an erasure writes outside the workspace, if anything.

    Parameters
    ----------
    receipts : Path, optional
        The folder for the people's receipts.
    suppression : Suppression, optional
        Another do-not-learn list, with its key, than the one that is remembered.
    without_do_not_learn : bool, default False
        Whether no such list is kept from now on.
    reference : str, optional
        Your own case number of one person's request; the receipt holds it.

    Examples
    --------
    >>> Outside(receipts=Path("receipts")).without_do_not_learn
    False
    """

    receipts: Path | None = None
    """The folder for the people's receipts."""
    suppression: Suppression | None = None
    """Another do-not-learn list, with its key, than the one that is remembered."""
    without_do_not_learn: bool = False
    """Whether no such list is kept from now on."""
    reference: str | None = None
    """Your own case number of one person's request; the receipt holds it."""

    @property
    def listing(self) -> Listing:
        """What is said here about the do-not-learn list."""
        return Listing(self.suppression, self.without_do_not_learn)


NOTHING_OUTSIDE = Outside()


@dataclass(frozen=True)
class Roll:
    """The do-not-learn list during one operation; `entries` is None if there is no list."""

    entries: SuppressionList | None = None
    places: Suppression | None = None
    """Where it is; None if it is in memory."""
    without: bool = False
    """Whether no list is kept."""
    notes: tuple[str, ...] = ()
    """What is worth saying about it."""

    def remembered_by(self, preferences: Preferences, workspace: Path | None) -> Preferences:
        """Return the preferences once this list is used."""
        places = None if self.places is None else _written(self.places, workspace)
        key = preferences.do_not_learn_key if self.entries is None else self.entries.key_digest
        remembered = {"do_not_learn": places, "do_not_learn_key": key if places else None}
        return preferences.model_copy(update={**remembered, "without_do_not_learn": self.without})


def default_places(workspace: Path) -> Suppression:
    """Return the default places of the list and its key: in two folders beside the workspace."""
    root = Path(os.path.realpath(workspace))
    list_folder, key_folder = (root.with_name(root.name + ending) for ending in (".do-not-learn", ".do-not-learn.key"))
    return Suppression(list_folder / "list.json", key_folder / "key")


def remembered_places(preferences: Preferences, workspace: Path | None) -> Suppression | None:
    """Return where the list is, as the workspace remembers it, if it does."""
    if preferences.do_not_learn is None:
        return None
    base = "" if workspace is None else os.path.realpath(workspace)
    list_file, key_file = (Path(os.path.normpath(os.path.join(base, place))) for place in preferences.do_not_learn)
    return Suppression(list_file, key_file)


@contextmanager
def beginning(session: Session, listing: Listing) -> Iterator[Roll]:
    """Open the list of a recommender that is about to learn; files made here are removed if the block fails."""
    if listing.without:
        yield Roll(without=True)
    elif listing.places is not None:
        with _made(listing.places) as entries:
            yield Roll(entries, listing.places, notes=_begun_note(listing.places, entries))
    elif session.path is None:
        yield Roll(_in_memory(session))
    else:
        places = default_places(session.path)
        with _folders_of(places), _made(places) as entries:
            yield Roll(entries, places, notes=_found_note(places, entries))


def roll_of(session: Session, listing: Listing, erasing: bool) -> Roll:
    """Return the list of a recommender that has learned; a missing list is refused, never taken as empty.

    A workspace from a version without such a list gets one with its next erasure.
    """
    preferences, another = session.documents().preferences, listing.places
    # A place that is remembered already must still hold the same list.
    if another is not None and _written(another, session.path) != preferences.do_not_learn:
        entries = _opened_or_begun(another)
        return Roll(entries, another, notes=_begun_note(another, entries))
    if listing.without or preferences.without_do_not_learn:
        return Roll(without=True)
    places = another or remembered_places(preferences, session.path)
    if places is not None:
        return Roll(_remembered(places, preferences), places)
    if session.path is None:
        return Roll(_in_memory(session))
    return _first(session.path, session.erasures) if erasing else Roll(notes=_missing_note(session.erasures))


def prepare_list(storage: Storage, places: Suppression) -> None:
    """Create a list that is named, or refuse one that is lost, before anything uses it."""
    with storage.reading() as session:
        roll_of(session, Listing(places), erasing=True)


def remember(session: Session, roll: Roll) -> None:
    """Remember where the list is, if that has changed."""
    documents = session.documents()
    preferences = roll.remembered_by(documents.preferences, session.path)
    if preferences != documents.preferences:
        session.amend(replace(documents, preferences=preferences))


def lists_of(roll: Roll) -> Places:
    """Return the lists for the people who are erased now."""
    return () if roll.entries is None else (_mark(roll),)


def still_listed(erased: Erased, roll: Roll, listing: Listing) -> Erased:
    """Return an unfinished erasure with the lists that its people are on; a list that the caller names replaces missing
    ones.

    Lists that can be read stay named even if none is kept from now on.
    """
    if listing.without:
        return erased.model_copy(update={"suppression": tuple(filter(_is_usable, erased.suppression))})
    kept = filter(_is_there, erased.suppression) if listing.places is not None else erased.suppression
    return erased.model_copy(update={"suppression": tuple(dict.fromkeys([*kept, *lists_of(roll)]))})


def refuse_unusable(lists: Places) -> None:
    """Refuse, before any work, lists that could not be written afterwards."""
    for places in _files(lists):
        SuppressionList.open(places)
        refuse_unwritable(Path(os.path.realpath(places.list)))


def put_on_lists(session: Session, lists: Places, requests: Sequence[Request]) -> None:
    """Put the erased people and interactions on the lists, durably."""
    for places in _files(lists):
        add_requests(places, requests, begin=False)
    if IN_MEMORY in lists and isinstance(session, MemorySession):
        session.do_not_learn = with_requests(_in_memory(session), requests)


@contextmanager
def readmitting(session: Session, roll: Roll, entries: SuppressionList | None) -> Iterator[None]:
    """Take the entries of people who come back off the list; they are put back if the block fails."""
    if entries is None or not entries.size:
        yield
    elif roll.places is not None:
        nothing = SuppressionList(entries.key)
        replace_entries(roll.places, entries, nothing)
        try:
            yield
        except BaseException:
            replace_entries(roll.places, nothing, entries)
            raise
    else:
        if isinstance(session, MemorySession):  # which is dropped as a whole if anything fails
            session.do_not_learn = _in_memory(session).without(entries)
        yield


@contextmanager
def copying(session: Session, into: Path) -> Iterator[Preferences]:
    """Give a copy in a new folder its own list with the same entries and key; a list named elsewhere serves both."""
    preferences = session.documents().preferences
    places = remembered_places(preferences, session.path)
    own = places is None or (session.path is not None and places == default_places(session.path))
    if places is not None and not own:
        yield preferences.model_copy(update={"do_not_learn": _written(places, into)})
    elif preferences.without_do_not_learn or (places is None and session.path is not None):
        yield preferences
    else:
        entries, copy = _remembered(places, preferences) if places else _in_memory(session), default_places(into)
        was_there = os.path.exists(copy.list)
        with _folders_of(copy):
            write_list(copy, entries)
            with _removed_on_failure(copy, None if was_there else entries):
                yield Roll(entries, copy).remembered_by(preferences, into)


def checkable(session: Session) -> tuple[SuppressionList | None, str]:
    """Return the list that a recommender remembers, or why it can't be read."""
    preferences = session.documents().preferences
    places = remembered_places(preferences, session.path)
    try:
        return (None if places is None else _remembered(places, preferences)), ""
    except Refused as error:
        return None, said("it can't be told whether someone erased is held again (", error.said, ")")


def list_facts(session: Session) -> dict[str, str | None]:
    """Say whether there is a list, and where it and its key are."""
    preferences = session.documents().preferences
    places = remembered_places(preferences, session.path)
    if places is not None:
        return {"kept": "in files", "list": str(places.list), "key": str(places.key)}
    where = "in memory" if session.path is None else "from the next erasure on"
    return {"kept": "no" if preferences.without_do_not_learn else where, "list": None, "key": None}


def _remembered(places: Suppression, preferences: Preferences) -> SuppressionList:
    """Read the list that was used before; one with another key was put there by mistake or on purpose."""
    found = SuppressionList.open(places)
    if preferences.do_not_learn_key not in (None, found.key_digest):
        raise ListUnusable(
            f"{places.list} is not the do-not-learn list that this workspace has used, its key is another: restore "
            "both from their newest copies; or, if these two are meant, move them elsewhere and name them with ",
            ANOTHER_LIST,
            "; or do without one (learn and forget take ",
            NO_LIST,
            ")",
        )
    return found


def _in_memory(session: Session) -> SuppressionList:
    if not isinstance(session, MemorySession):
        return SuppressionList.new()
    if session.do_not_learn is None:
        session.do_not_learn = SuppressionList.new()
    return session.do_not_learn


def _first(workspace: Path, erasures: int) -> Roll:
    """Create the list of a workspace that has none, or use the one that is in its place."""
    places = default_places(workspace)
    with _folders_of(places):
        entries = _opened_or_begun(places)
    notes = _found_note(places, entries)
    if erasures:
        notes = (*notes, f"a do-not-learn list begins with this erasure, {places.list}: {_EARLIER}")
    return Roll(entries, places, notes=notes)


def _opened_or_begun(places: Suppression) -> SuppressionList:
    """Read a list, or create one if there is neither list nor key; one without the other is refused."""
    lost = os.path.exists(places.key) and not os.path.exists(places.list)
    return SuppressionList.open(places) if lost else SuppressionList.open_or_create(places)


@contextmanager
def _made(places: Suppression) -> Iterator[SuppressionList]:
    was_there = os.path.exists(places.list) and os.path.exists(places.key)
    entries = _opened_or_begun(places)
    with _removed_on_failure(places, None if was_there else entries):
        yield entries


@contextmanager
def _removed_on_failure(places: Suppression, made: SuppressionList | None) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if made is not None:
            with suppress(ErasableError, OSError):
                remove_list(places, made)
        raise


@contextmanager
def _folders_of(places: Suppression) -> Iterator[None]:
    """Make the folders of a list and its key, readable by their owner alone; they are removed if the block fails."""
    made: list[Path] = []
    try:
        for folder in (places.list.parent, places.key.parent):
            if not folder.is_dir():
                made.append(folder)
                _make_folder(folder)
        yield
    except BaseException:
        for folder in made:
            with suppress(ErasableError, OSError):
                files.remove_folder(folder)
        raise


def _make_folder(folder: Path) -> None:
    try:
        files.make_folder(folder)
    except DiskFull:
        raise
    except WorkspaceError as error:
        raise WorkspaceError("the do-not-learn list can't be created: ", error.said, "; or ", _OTHERWISE) from error


def _written(places: Suppression, workspace: Path | None) -> tuple[str, str]:
    """Return places as they are remembered: relative if they are beside the workspace, so that all move together."""
    beside = None if workspace is None else os.path.dirname(os.path.realpath(workspace))

    def written(place: Path) -> str:
        folder = os.path.realpath(place.parent)
        if os.path.dirname(folder) == beside:
            return os.path.join(os.pardir, os.path.basename(folder), place.name)
        return os.path.abspath(place)

    return written(places.list), written(places.key)


def _mark(roll: Roll) -> tuple[str, str]:
    """Return the name of a list in the search file."""
    places = roll.places
    return IN_MEMORY if places is None else (os.path.abspath(places.list), os.path.abspath(places.key))


def _files(lists: Places) -> Sequence[Suppression]:
    return [Suppression(Path(mark[0]), Path(mark[1])) for mark in lists if mark != IN_MEMORY]


def _is_there(mark: tuple[str, str]) -> bool:
    return mark == IN_MEMORY or all(map(os.path.exists, mark))


def _is_usable(mark: tuple[str, str]) -> bool:
    if mark == IN_MEMORY:
        return True
    try:
        SuppressionList.open(Suppression(Path(mark[0]), Path(mark[1])))
    except ListUnusable:
        return False
    return True


def _begun_note(places: Suppression, entries: SuppressionList) -> tuple[str, ...]:
    return () if entries.size else (f"the do-not-learn list {places.list} is empty so far",)


def _found_note(places: Suppression, entries: SuppressionList) -> tuple[str, ...]:
    if not entries.size:
        return ()
    return (f"there is a do-not-learn list of an earlier workspace, {places.list}: whoever is on it stays out",)


def _missing_note(erasures: int) -> tuple[str, ...]:
    return (f"there is no do-not-learn list yet, the next erasure begins one; {_EARLIER}",) if erasures else ()


def prepare_outside(outside: Outside, workspace: Path | None) -> None:
    """Refuse, before any work, a folder that receipts could not be written to afterwards."""
    folder = outside.receipts
    if folder is None:
        return
    if workspace is not None and folder.resolve().is_relative_to(workspace.resolve()):
        raise WrongUse(f"{folder} lies in the workspace, which must not keep receipts: give another folder")
    if not folder.is_dir():
        files.make_folder(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise WrongUse(f"{folder} can't be written to: give ", option("receipts"), " another folder")


def write_receipts(receipts: Sequence[Receipt], folder: Path) -> None:
    """Write each person's receipt, readable by the owner of the file alone."""
    for receipt in receipts:
        files.write_file(folder / f"{receipt.request_id}.json", receipt.encoded())
