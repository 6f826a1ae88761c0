"""The scan of a folder: every file below it, its name and its content, for everybody who was erased from it."""

import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from erasable.errors import WorkspaceError
from erasable.proof.residue.evidence import Evidence, File
from erasable.proof.residue.file_search import KINDS, Kind, search_file, search_name, search_order
from erasable.proof.residue.reading import read_file
from erasable.proof.residue.target import NOTHING_HELD, Held, Residue, Scan, Target
from erasable.proof.residue.vocabulary import Vocabulary, is_own_name
from erasable.proof.residue.wanted import Wanted
from erasable.proof.residue.wording import SENTENCES, searched

_START = 1024
_TIMES = 4
_JOURNAL_ENDINGS = ("-wal", "-journal")


Advance = Callable[[int], None]
Follow = Callable[[int | None], AbstractContextManager[Advance]]
"""Follows a scan of so many bytes, if that is known: what it yields is called with the bytes of each part done."""


def unfollowed(total: int | None) -> AbstractContextManager[Advance]:
    """Follow nothing."""
    return nullcontext(lambda done: None)


class _Vanished(WorkspaceError):
    """A file was there when the folder was listed, and is gone when it is read."""


def scan_folder(
    root: Path,
    targets: Sequence[Target],
    skip: Collection[str] = (),
    held: Held = NOTHING_HELD,
    sealed: Collection[str] = (),
    follow: Follow = unfollowed,
) -> Scan:
    """Search every file below a folder for some people, all but those whose relative names are to be skipped or sealed.

    Where a searched id is a part of something longer, it does not count if that is an id that is held; names of issuers
    don't count where they stand in the manifest and on certificates. Links are not followed; where they lead to is
    searched. What can't be read is refused, since a scan that could not look must not say that nothing is there. Where
    a file goes meanwhile, such as the log of a database, all is searched again: what it held may stand in another one
    now. Whoever wants to follow it is told of each file.
    """
    for _ in range(_TIMES - 1):
        with suppress(_Vanished):
            return _followed(root, targets, skip, held, sealed, follow)
    return _followed(root, targets, skip, held, sealed, follow)


def _followed(
    root: Path, targets: Sequence[Target], skip: Collection[str], held: Held, sealed: Collection[str], follow: Follow
) -> Scan:
    # What comes in between is searched, and counts beyond what was announced.
    with follow(_weight(root, {*skip, *sealed})) as advance:
        return _scanned(root, targets, skip, held, sealed, advance)


def _scanned(
    root: Path, targets: Sequence[Target], skip: Collection[str], held: Held, sealed: Collection[str], advance: Advance
) -> Scan:
    evidence = Evidence(Wanted(targets), Vocabulary.of(SENTENCES, held.settings))
    evidence.note_held(held)
    kinds: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
    size = raw_only = 0
    entries = sorted(_entries(root, {*skip, *sealed}), key=lambda entry: (entry.order, entry.name))
    # The names that we give stand in our own files too.
    names = (entry.shown.rsplit("/", 1)[-1] for entry in entries)
    evidence.note_ids(name for name in names if is_own_name(name))
    for entry in entries:
        file = File(entry.shown, evidence)
        search_name(file, entry.shown.rsplit("/", 1)[-1])
        if not entry.is_folder:
            content = entry.content()
            kind = _search(entry, file, content)
            kinds[kind] += 1
            size += len(content)
            raw_only += kind == "other" and len(content) > 0 and not entry.is_link
            advance(len(content) + 1)
    said = searched(evidence.wanted, raw_only, len(skip), bool(sealed), bool(held.declared))
    return Scan(sum(kinds.values()), size, dict(kinds), said, evidence.residues)


def scan_contents(
    contents: Mapping[str, bytes], targets: Sequence[Target], ours: Collection[str], held: Held = NOTHING_HELD
) -> tuple[Residue, ...]:
    """Search files that are about to be written, by relative name, for some people; some words and names are ours.

    Of what is held only the names of issuers and of settings count.
    """
    evidence = Evidence(Wanted(targets), Vocabulary.of(SENTENCES, held.settings), declared=held.declared)
    evidence.note_ambiguous(ours)
    for name, content in contents.items():
        search_file(File(name, evidence), content, name, lambda: b"")
    return evidence.residues


def naming(texts: Iterable[str], targets: Sequence[Target]) -> frozenset[str]:
    """Return those of some texts that hold anything of some people, read as names and as contents."""
    wanted, words = Wanted(targets), Vocabulary.of(SENTENCES)
    found = set[str]()
    for text in {*texts}:
        evidence = Evidence(wanted, words)
        search_name(File("", evidence), text)
        search_file(File("", evidence), text.encode("utf-8", "backslashreplace"), "", lambda: b"")
        if evidence.residues:
            found.add(text)
    return frozenset(found)


def _search(entry: "_Entry", file: File, content: bytes) -> Kind:
    if not entry.is_link:
        return search_file(file, content, entry.shown, entry.database)
    for part in content.decode("utf-8", "backslashreplace").split("/"):
        search_name(file, part, "the link")
    return "other"


@dataclass(frozen=True)
class _Entry:
    """A file, a folder or a link below the root."""

    root: Path
    name: str
    order: int = 0
    is_folder: bool = False
    is_link: bool = False

    @property
    def shown(self) -> str:
        """The name as it can be printed."""
        return os.fsencode(self.name).decode("utf-8", "backslashreplace")

    def content(self, most: int = -1) -> bytes:
        """Return what a file holds, all of it or the beginning, or where a link leads to."""
        path = self.root / self.name
        try:
            if self.is_link:
                return os.fsencode(path.readlink())
            # Pipes and sockets hold nothing, and reading them would wait.
            if not stat.S_ISREG(path.stat().st_mode):
                return b""
            return read_file(path, most)
        except FileNotFoundError as error:
            raise _Vanished(str(_unreadable(path, error))) from error
        except OSError as error:
            raise _unreadable(path, error) from error

    def database(self) -> bytes:
        """Return the database that a journal belongs to; empty if there is none."""
        ending = next((ending for ending in _JOURNAL_ENDINGS if self.name.endswith(ending)), None)
        beside = _Entry(self.root, self.name.removesuffix(ending)) if ending else None
        return beside.content() if beside and (self.root / beside.name).is_file() else b""


def _weight(root: Path, skip: Collection[str]) -> int:
    """Return what a scan of a folder has before it: the bytes of each file, and one, so that small files count."""
    weight = 0
    for place, _, names in os.walk(root):
        below = "" if place == os.fspath(root) else f"{os.path.relpath(place, root)}/"
        for name in names:
            if f"{below}{name}" not in skip:
                with suppress(OSError):  # gone since: whether that matters is found out when it is searched
                    weight += os.lstat(os.path.join(place, name)).st_size + 1
    return weight


def _entries(root: Path, skip: Collection[str]) -> Iterator[_Entry]:
    def refuse(error: OSError) -> None:
        raise _unreadable(Path(error.filename or root), error)

    # Put together as text: what is skipped may be a hundred thousand certificates.
    for place, folders, names in os.walk(root, onerror=refuse):
        below = "" if place == os.fspath(root) else f"{os.path.relpath(place, root)}/"
        for name, is_folder in (*((name, True) for name in folders), *((name, False) for name in names)):
            if f"{below}{name}" not in skip:
                yield _entry(root, f"{below}{name}", is_folder)


def _entry(root: Path, name: str, is_folder: bool) -> _Entry:
    path = root / name
    if path.is_symlink():
        return _Entry(root, name, is_link=True)
    if is_folder:
        return _Entry(root, name, is_folder=True)
    return _Entry(root, name, search_order(_Entry(root, name).content(_START)))


def _unreadable(path: Path, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"{path} can't be read ({error.strerror}), so nobody knows whom it holds: check that you may read it, and that "
        "nobody changes it meanwhile"
    )
