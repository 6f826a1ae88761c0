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
    DoNotLearnFiles,
    DoNotLearnList,
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
class ListChoice:
    """What the caller says about the do-not-learn list: another place for it, or that none is kept."""

    places: DoNotLearnFiles | None = None
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
    do_not_learn : DoNotLearnFiles, optional
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
    do_not_learn: DoNotLearnFiles | None = None
    """Another do-not-learn list, with its key, than the one that is remembered."""
    without_do_not_learn: bool = False
    """Whether no such list is kept from now on."""
    reference: str | None = None
    """Your own case number of one person's request; the receipt holds it."""

    @property
    def listing(self) -> ListChoice:
        """What is said here about the do-not-learn list."""
        return ListChoice(self.do_not_learn, self.without_do_not_learn)


NOTHING_OUTSIDE = Outside()


@dataclass(frozen=True)
class OpenList:
    """The do-not-learn list during one operation; `entries` is None if there is no list."""

    entries: DoNotLearnList | None = None
    places: DoNotLearnFiles | None = None
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


def default_places(workspace: Path) -> DoNotLearnFiles:
    """Return the default places of the list and its key: in two folders beside the workspace."""
    root = Path(os.path.realpath(workspace))
    list_folder, key_folder = (root.with_name(root.name + ending) for ending in (".do-not-learn", ".do-not-learn.key"))
    return DoNotLearnFiles(list_folder / "list.json", key_folder / "key")


def remembered_places(preferences: Preferences, workspace: Path | None) -> DoNotLearnFiles | None:
    """Return where the list is, as the workspace remembers it, if it does."""
    return None if preferences.do_not_learn is None else _resolved(preferences.do_not_learn, workspace)


@contextmanager
def beginning(session: Session, listing: ListChoice) -> Iterator[OpenList]:
    """Open the list of a recommender that is about to learn; files made here are removed if the block fails."""
    if listing.without:
        yield OpenList(without=True)
    elif listing.places is not None:
        with _made(listing.places) as entries:
            yield OpenList(entries, listing.places, notes=_begun_note(listing.places, entries))
    elif session.path is None:
        yield OpenList(_in_memory(session))
    else:
        places = default_places(session.path)
        with _folders_of(places), _made(places) as entries:
            yield OpenList(entries, places, notes=_found_note(places, entries))


def open_list_of(session: Session, listing: ListChoice, erasing: bool) -> OpenList:
    """Return the list of a recommender that has learned; a missing list is refused, never taken as empty.

    A workspace from a version without such a list gets one with its next erasure.
    """
    preferences, another = session.documents().preferences, listing.places
    # A place that is remembered already must still hold the same list.
    if another is not None and _written(another, session.path) != preferences.do_not_learn:
        entries = _opened_or_begun(another)
        return OpenList(entries, another, notes=_begun_note(another, entries))
    if listing.without or preferences.without_do_not_learn:
        return OpenList(without=True)
    places = another or remembered_places(preferences, session.path)
    if places is not None:
        return OpenList(_remembered(places, preferences), places)
    if session.path is None:
        return OpenList(_in_memory(session))
    return _first(session.path, session.erasures) if erasing else OpenList(notes=_missing_note(session.erasures))


def prepare_list(storage: Storage, places: DoNotLearnFiles) -> None:
    """Create a list that is named, or refuse one that is lost, before anything uses it."""
    with storage.reading() as session:
        open_list_of(session, ListChoice(places), erasing=True)


def remember(session: Session, open_list: OpenList) -> None:
    """Remember where the list is, if that has changed."""
    documents = session.documents()
    preferences = open_list.remembered_by(documents.preferences, session.path)
    if preferences != documents.preferences:
        session.amend(replace(documents, preferences=preferences))


def lists_of(open_list: OpenList, workspace: Path | None) -> Places:
    """Return the lists for the people who are erased now, as the search file names them."""
    if open_list.entries is None:
        return ()
    return (IN_MEMORY if open_list.places is None else _written(open_list.places, workspace),)


def still_listed(erased: Erased, open_list: OpenList, listing: ListChoice, workspace: Path | None) -> Erased:
    """Return an unfinished erasure with the lists that its people are on; a list that the caller names replaces missing
    ones.

    Lists that can be read stay named even if none is kept from now on. People who may return are on none.
    """
    if erased.may_return:
        return erased
    if listing.without:
        kept = tuple(mark for mark in erased.suppression if _is_usable(mark, workspace))
        return erased.model_copy(update={"suppression": kept})
    named = [mark for mark in erased.suppression if listing.places is None or _is_there(mark, workspace)]
    lists = dict.fromkeys([*named, *lists_of(open_list, workspace)])
    return erased.model_copy(update={"suppression": tuple(lists)})


def refuse_unusable(lists: Places, workspace: Path | None) -> None:
    """Refuse, before any work, lists that could not be written afterwards."""
    for places in _files(lists, workspace):
        DoNotLearnList.open(places)
        refuse_unwritable(Path(os.path.realpath(places.list)))


def put_on_lists(session: Session, lists: Places, requests: Sequence[Request]) -> None:
    """Put the erased people and interactions on the lists, durably."""
    for places in _files(lists, session.path):
        add_requests(places, requests, begin=False)
    if IN_MEMORY in lists and isinstance(session, MemorySession):
        session.do_not_learn = with_requests(_in_memory(session), requests)


@contextmanager
def readmitting(session: Session, open_list: OpenList, entries: DoNotLearnList | None) -> Iterator[None]:
    """Take the entries of people who come back off the list; they are put back if the block fails."""
    if entries is None or not entries.size:
        yield
    elif open_list.places is not None:
        nothing = DoNotLearnList(entries.key)
        replace_entries(open_list.places, entries, nothing)
        try:
            yield
        except BaseException:
            replace_entries(open_list.places, nothing, entries)
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
                yield OpenList(entries, copy).remembered_by(preferences, into)


def checkable(session: Session) -> tuple[DoNotLearnList | None, str]:
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


def _remembered(places: DoNotLearnFiles, preferences: Preferences) -> DoNotLearnList:
    """Read the list that was used before; one with another key was put there by mistake or on purpose."""
    found = DoNotLearnList.open(places)
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


def _in_memory(session: Session) -> DoNotLearnList:
    if not isinstance(session, MemorySession):
        return DoNotLearnList.new()
    if session.do_not_learn is None:
        session.do_not_learn = DoNotLearnList.new()
    return session.do_not_learn


def _first(workspace: Path, erasures: int) -> OpenList:
    """Create the list of a workspace that has none, or use the one that is in its place."""
    places = default_places(workspace)
    with _folders_of(places):
        entries = _opened_or_begun(places)
    notes = _found_note(places, entries)
    if erasures:
        notes = (*notes, f"a do-not-learn list begins with this erasure, {places.list}: {_EARLIER}")
    return OpenList(entries, places, notes=notes)


def _opened_or_begun(places: DoNotLearnFiles) -> DoNotLearnList:
    """Read a list, or create one if there is neither list nor key; one without the other is refused."""
    lost = os.path.exists(places.key) and not os.path.exists(places.list)
    return DoNotLearnList.open(places) if lost else DoNotLearnList.open_or_create(places)


@contextmanager
def _made(places: DoNotLearnFiles) -> Iterator[DoNotLearnList]:
    was_there = os.path.exists(places.list) and os.path.exists(places.key)
    entries = _opened_or_begun(places)
    with _removed_on_failure(places, None if was_there else entries):
        yield entries


@contextmanager
def _removed_on_failure(places: DoNotLearnFiles, made: DoNotLearnList | None) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if made is not None:
            with suppress(ErasableError, OSError):
                remove_list(places, made)
        raise


@contextmanager
def _folders_of(places: DoNotLearnFiles) -> Iterator[None]:
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


def _written(places: DoNotLearnFiles, workspace: Path | None) -> tuple[str, str]:
    """Return places as they are remembered: relative if they are beside the workspace, so that all move together."""
    beside = None if workspace is None else os.path.dirname(os.path.realpath(workspace))

    def written(place: Path) -> str:
        folder = os.path.realpath(place.parent)
        if os.path.dirname(folder) == beside:
            return os.path.join(os.pardir, os.path.basename(folder), place.name)
        return os.path.abspath(place)

    return written(places.list), written(places.key)


def _resolved(written: tuple[str, str], workspace: Path | None) -> DoNotLearnFiles:
    """Return where places are that `_written` wrote; up to 0.1 the search file named them by their whole paths."""
    base = "" if workspace is None else os.path.realpath(workspace)
    list_file, key_file = (Path(os.path.normpath(os.path.join(base, place))) for place in written)
    return DoNotLearnFiles(list_file, key_file)


def _files(lists: Places, workspace: Path | None) -> Sequence[DoNotLearnFiles]:
    return [_resolved(mark, workspace) for mark in lists if mark != IN_MEMORY]


def _is_there(mark: tuple[str, str], workspace: Path | None) -> bool:
    places = _resolved(mark, workspace)
    return mark == IN_MEMORY or (places.list.exists() and places.key.exists())


def _is_usable(mark: tuple[str, str], workspace: Path | None) -> bool:
    if mark == IN_MEMORY:
        return True
    try:
        DoNotLearnList.open(_resolved(mark, workspace))
    except ListUnusable:
        return False
    return True


def _begun_note(places: DoNotLearnFiles, entries: DoNotLearnList) -> tuple[str, ...]:
    return () if entries.size else (f"the do-not-learn list {places.list} is empty so far",)


def _found_note(places: DoNotLearnFiles, entries: DoNotLearnList) -> tuple[str, ...]:
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
