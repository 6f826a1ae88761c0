"""The do-not-learn list of a recommender: where it lies, who is on it, and what is remembered of it.

On disk it lies beside the workspace unless another place was named; a recommender in memory has it in memory.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from erasable.errors import DiskFull, ErasableError, ListUnusable, Refused, WorkspaceError, said
from erasable.operations.home import Home, MemorySession, Session
from erasable.proof.search_file import IN_MEMORY, Erased, Places
from erasable.proof.suppression import (
    Suppression,
    SuppressionList,
    add_requests,
    remove_list,
    replace_entries,
    with_requests,
    write_list,
)
from erasable.proof.suppression_files import ANOTHER_LIST, NO_LIST, refuse_unwritable
from erasable.requests import Request
from erasable.store import Preferences, files

_OTHERWISE = said("name other places with ", ANOTHER_LIST, ", or do without with ", NO_LIST)
_EARLIER = "whoever was erased before can't be recognised: take them out of your files, or forget them again"


@dataclass(frozen=True)
class Listing:
    """What is said about the do-not-learn list when something is done: another place for it, or that none is kept."""

    places: Suppression | None = None
    without: bool = False

    @property
    def is_said(self) -> bool:
        """Whether anything is said at all."""
        return self.without or self.places is not None


@dataclass(frozen=True)
class Roll:
    """The do-not-learn list as one operation uses it; it has no entries if there is none."""

    entries: SuppressionList | None = None
    places: Suppression | None = None
    """Where it lies; nowhere if it is in memory."""
    without: bool = False
    """Whether none is to be kept."""
    notes: tuple[str, ...] = ()
    """What is worth saying about it."""

    def remembered_by(self, preferences: Preferences, workspace: Path | None) -> Preferences:
        """Return what is remembered once this list is used."""
        places = None if self.places is None else _written(self.places, workspace)
        key = preferences.do_not_learn_key if self.entries is None else self.entries.key_digest
        remembered = {"do_not_learn": places, "do_not_learn_key": key if places else None}
        return preferences.model_copy(update={**remembered, "without_do_not_learn": self.without})


def default_places(workspace: Path) -> Suppression:
    """Return where the list of a workspace and its key lie unless other places are named: in two folders beside it."""
    root = Path(os.path.realpath(workspace))
    list_folder, key_folder = (root.with_name(root.name + ending) for ending in (".do-not-learn", ".do-not-learn.key"))
    return Suppression(list_folder / "list.json", key_folder / "key")


def remembered_places(preferences: Preferences, workspace: Path | None) -> Suppression | None:
    """Return where a recommender remembers its list to lie, if it does."""
    if preferences.do_not_learn is None:
        return None
    base = "" if workspace is None else os.path.realpath(workspace)
    list_file, key_file = (Path(os.path.normpath(os.path.join(base, place))) for place in preferences.do_not_learn)
    return Suppression(list_file, key_file)


@contextmanager
def beginning(session: Session, listing: Listing) -> Iterator[Roll]:
    """Give the list of a recommender that is about to learn; what was made of it is removed if the block fails."""
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
    """Return the list of a recommender that has learned; one that is missing is refused, never taken as empty.

    A workspace of a version that knew no such list gets one when it is erasing.
    """
    preferences, another = session.papers().preferences, listing.places
    # Once it is remembered, a place that is named again must hold what it held.
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


def prepare_list(home: Home, places: Suppression) -> None:
    """Begin a list that is named, or refuse one that is lost, before anything is done with it."""
    with home.reading() as session:
        roll_of(session, Listing(places), erasing=True)


def remember(session: Session, roll: Roll) -> None:
    """Remember where the list lies, if that has changed."""
    papers = session.papers()
    preferences = roll.remembered_by(papers.preferences, session.path)
    if preferences != papers.preferences:
        session.amend(replace(papers, preferences=preferences))


def lists_of(roll: Roll) -> Places:
    """Return the lists that who is erased now is put on."""
    return () if roll.entries is None else (_mark(roll),)


def still_listed(erased: Erased, roll: Roll, listing: Listing) -> Erased:
    """Return an erasure that is done with the lists that its people are on; where it was said, another replaces those
    that are not there.

    They stay named even if none is kept from now on, if they can be read.
    """
    if listing.without:
        return erased.model_copy(update={"suppression": tuple(filter(_is_usable, erased.suppression))})
    kept = filter(_is_there, erased.suppression) if listing.places is not None else erased.suppression
    return erased.model_copy(update={"suppression": tuple(dict.fromkeys([*kept, *lists_of(roll)]))})


def refuse_unusable(lists: Places) -> None:
    """Refuse, before any work, lists that nobody could be put on afterwards."""
    for places in _files(lists):
        SuppressionList.open(places)
        refuse_unwritable(Path(os.path.realpath(places.list)))


def put_on_lists(session: Session, lists: Places, requests: Sequence[Request]) -> None:
    """Put who and what is erased on the lists, durably."""
    for places in _files(lists):
        add_requests(places, requests, begin=False)
    if IN_MEMORY in lists and isinstance(session, MemorySession):
        session.do_not_learn = with_requests(_in_memory(session), requests)


@contextmanager
def readmitting(session: Session, roll: Roll, entries: SuppressionList | None) -> Iterator[None]:
    """Take entries off the list of someone who comes back; they are put on it again if the block fails."""
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
    """Give a copy in a new folder a list of its own with the same entries and key; one named elsewhere serves both."""
    preferences = session.papers().preferences
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
    """Return the list that a recommender remembers, if it can be read, and else why it can't."""
    preferences = session.papers().preferences
    places = remembered_places(preferences, session.path)
    try:
        return (None if places is None else _remembered(places, preferences)), ""
    except Refused as error:
        return None, said("whether someone erased is held again can't be told (", error.said, ")")


def list_facts(session: Session) -> dict[str, str | None]:
    """Say whether there is a list, and where it and its key lie."""
    preferences = session.papers().preferences
    places = remembered_places(preferences, session.path)
    if places is not None:
        return {"kept": "in files", "list": str(places.list), "key": str(places.key)}
    where = "in memory" if session.path is None else "from the next erasure on"
    return {"kept": "no" if preferences.without_do_not_learn else where, "list": None, "key": None}


def _remembered(places: Suppression, preferences: Preferences) -> SuppressionList:
    """Read the list that was used before; one with another key lies in its place by mistake, or was put there."""
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
    """Begin the list of a workspace that has none, or take what lies in its place."""
    places = default_places(workspace)
    with _folders_of(places):
        entries = _opened_or_begun(places)
    notes = _found_note(places, entries)
    if erasures:
        notes = (*notes, f"a do-not-learn list begins with this erasure, {places.list}: {_EARLIER}")
    return Roll(entries, places, notes=notes)


def _opened_or_begun(places: Suppression) -> SuppressionList:
    """Read a list, or begin one where neither a list nor a key is; one without the other is refused."""
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
    """Make the folders of a list and of its key, for their owner alone; they are removed again if the block fails."""
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
        raise WorkspaceError("the do-not-learn list has no place: ", error.said, "; or ", _OTHERWISE) from error


def _written(places: Suppression, workspace: Path | None) -> tuple[str, str]:
    """Write places as they are remembered: relative if they lie beside the workspace, so that all move together."""
    beside = None if workspace is None else os.path.dirname(os.path.realpath(workspace))

    def written(place: Path) -> str:
        folder = os.path.realpath(place.parent)
        if os.path.dirname(folder) == beside:
            return os.path.join(os.pardir, os.path.basename(folder), place.name)
        return os.path.abspath(place)

    return written(places.list), written(places.key)


def _mark(roll: Roll) -> tuple[str, str]:
    """Return a list as the search file names it."""
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
