"""Scanning a folder: the name and content of every file below it, and sentences about what was searched and how."""

import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from erasable.errors import WorkspaceError
from erasable.scan import _source
from erasable.scan._evidence import Evidence, File
from erasable.scan._files import EMPTY, JOURNAL_ENDINGS, KINDS, Kind, search_file, search_name, search_order
from erasable.scan._source import BytesInMemory, OnDisk, ReadElsewhere, Source, by_another_process, whole
from erasable.scan._target import NOTHING_HELD, Held, Residue, Scan, Target, Vocabulary
from erasable.scan._wanted import Wanted

NAMES = "The names of all files and folders, and where links lead to."
CONTENTS = (
    "Parquet and Arrow files: rows, nested values, dictionaries with the values that no row uses, metadata and names "
    "of columns; of Parquet also statistics. Safetensors and NumPy files: metadata, names, arrays. JSON and JSON "
    "lines: every text and key, JSON inside texts too. SQLite files: every table, free pages, free blocks, "
    "write-ahead logs and rollback journals. Delimited text: every cell; other text: its lines. Files packed by gzip, "
    "bzip2, xz, zstd, lz4 or zip: opened."
)
FIELDS = (
    "Ids were compared as whole values where ids of users can stand: in columns, arrays and JSON fields named like a "
    "user; without any, in a column named id, else in a first column of unknown meaning; in JSON in every text and "
    "key that is not named after items or measures; numbers of 8 digits or more in every column, array and field that "
    "is not named after a measure; in files of the workspace itself, whose fields are known, in those named like a "
    "user only. In SQLite, deleted rows were put together again from what is left of them."
)
ITEM_TABLES = (
    "In tables of items that were declared, ids of any length were compared with every text, with every part of one "
    "between | and with every whole number, whatever the column is named. There an id that is a number of fewer than 8 "
    "digits can't be told from a price or a count, nor one that is also the id of an item from that item: these were "
    "compared in columns named like a user only."
)
"""Said in `Scan.searched` where there are such tables."""
ENCODINGS = (
    "Ids of 8 bytes or more, exactly as they are written, were also searched inside every text and key, and as raw "
    "bytes where a file does not pack them: in UTF-8, UTF-16, UTF-32, Latin-1, CP1252, JSON escapes, percent "
    "encoding, XML escapes, between quotes, quoted-printable, hexadecimal, base64 at each alignment, as the 16 bytes "
    "of a UUID and as large 64-bit integers. A hit does not count if it is a part of a longer id of someone or "
    "something else that the data hold and that stands there, of a longer word of the workspace's own files, or, of a "
    "number, of a longer number. Shorter ids, and ids that are also the id of an item that is held or a word of the "
    "workspace's own files, were compared as fields only; a single word was not looked for in the sentences of "
    "certificates. Not searched: the same id in other upper and lower case or another Unicode form, and what is "
    "packed or encrypted inside a cell."
)
PAIRS = (
    "Where only some interactions were erased and the person stays, looked for was the person with such an item in one "
    "row or object."
)
VALUES = (
    "The interactions that were held were searched as values where no user is named: three or more in a row, items "
    "with their ratings, or times; times also as raw bytes in arrays. An item that nobody has any more was compared as "
    "a whole value in columns of items."
)
UNKNOWN = "What was held of the person is not known here any more: only the id was searched."
"""Said in `Scan.searched` where a target has no rows."""
_AS_NUMBERS = "was searched as float16, bfloat16, float32 and float64, and as decoded numbers in single precision."
PERSONAL = f"The person's row of the model {_AS_NUMBERS}"
"""Said in `Scan.searched` where a target has personal rows."""
PERSONAL_OR_SHARED = f"The person's row of the model, unless someone who stays has the same, {_AS_NUMBERS}"
"""Used in certificates: saying which rows someone else shares would reveal people with little data."""
_LIKE_IDS = "were searched like ids of 8 bytes or more."
TEXTS = f"Texts that must be gone, such as names of destroyed checkpoints, {_LIKE_IDS}"
"""Said in `Scan.searched` where a target has texts."""
TEXTS_IF_ANY = f"Texts that must be gone, such as names of checkpoints if any were destroyed, {_LIKE_IDS}"
"""Used in certificates: saying whether any were destroyed would reveal who shaped shared parameters."""
RAW_ONLY = (
    "searched as raw bytes alone, in which an id of less than 8 bytes can't be told from other bytes, and what is "
    "packed or encrypted can't be found."
)
LEFT_OUT = "Left out were the requests being carried out, which are destroyed when the certificate is written"
SEALED = (
    "Left out were the sealed documents of erasures before: certificates, records, and requests of the service. When "
    "they were sealed they were searched for those who were erased then; `erasable scan` searches them for anyone."
)
DECLARED = "The issuer's name, which is declared, was not searched where it stands in the manifest and on certificates."
SENTENCES = (
    LEFT_OUT,
    SEALED,
    DECLARED,
    NAMES,
    CONTENTS,
    FIELDS,
    ITEM_TABLES,
    ENCODINGS,
    PAIRS,
    VALUES,
    UNKNOWN,
    PERSONAL,
    PERSONAL_OR_SHARED,
    TEXTS,
    TEXTS_IF_ANY,
    RAW_ONLY,
)


FORMAT_WORDS = (
    "safetensors parquet __metadata__ data_offsets parquet-cpp-arrow ARROW:schema key_value sqlite_master "
    "sqlite_sequence SQLite format 3"
)
OWN_WORDS = (*SENTENCES, FORMAT_WORDS)
"""Words that occur in files of these formats, and the scan's own sentences, which occur in certificates."""


def searched(
    wanted: Wanted,
    raw_only: int,
    skipped: int,
    sealed: bool = False,
    declared: bool = False,
    item_tables: bool = False,
) -> tuple[str, ...]:
    """Return what was searched and how; so many files were searched as raw bytes only, and so many left out.

    Nothing personal is counted: neither interactions nor the length of an id.
    """
    known = [target.rows is not None for target in wanted.targets]
    rules = {
        ITEM_TABLES: item_tables,
        ENCODINGS: True,
        PAIRS: bool(wanted.pairs),
        VALUES: any(known),
        UNKNOWN: not all(known),
        PERSONAL: any(target.personal for target in wanted.targets),
        TEXTS: bool(wanted.texts),
    }
    said = [NAMES, CONTENTS, FIELDS, *(sentence for sentence, applies in rules.items() if applies)]
    if raw_only:
        said.append(f"{_counted(raw_only, 'file')} of other kinds: {RAW_ONLY}")
    if skipped:
        said.append(f"{LEFT_OUT}: {_counted(skipped, 'file')}.")
    if sealed:
        said.append(SEALED)
    if declared:
        said.append(DECLARED)
    return tuple(said)


def _counted(number: int, one: str) -> str:
    return f"{number:,} {one}{'' if number == 1 else 's'}"


_BESIDE_DATABASES = ("-wal", "-shm", "-journal")
_START = 1024
_TIMES = 4


Advance = Callable[[int], None]
Follow = Callable[[int | None], AbstractContextManager[Advance]]
"""Tracks a scan of so many bytes, if known; it yields a function to call with the bytes of each part done."""


def unfollowed(total: int | None) -> AbstractContextManager[Advance]:
    """Ignore progress: the default of `scan_folder`.

    Parameters
    ----------
    total : int or None
        The number of bytes to search.

    Returns
    -------
    context manager
        It yields a function that does nothing.

    Examples
    --------
    >>> with unfollowed(1000) as advance:
    ...     advance(400)
    """
    return nullcontext(lambda done: None)


class _Vanished(WorkspaceError):
    """A file that was listed is gone when it is read."""


def scan_folder(
    folder: Path,
    targets: Sequence[Target],
    vocabulary: Vocabulary,
    *,
    skip: Collection[str] = (),
    held: Held = NOTHING_HELD,
    sealed: Collection[str] = (),
    clean: Collection[str] = (),
    follow: Follow = unfollowed,
) -> Scan:
    """Search every file below a folder for data of some people.

    A hit inside a longer text does not count if that text is another id in the data. Links are not followed, but their
    targets are searched as text. A file that can't be read is an error, since the scan must not claim that nothing is
    there. If a file vanishes meanwhile, such as the log of a database, everything is searched again: its content may
    be in another file now.

    Parameters
    ----------
    folder : Path
        Everything below it is searched: names, contents, targets of links.
    targets : sequence of Target
        The people to search for.
    vocabulary : Vocabulary
        Words, fields and files that name nobody; `Vocabulary()` if none are known.
    skip : collection of str
        Paths below the folder to leave out; the scan's sentences mention them.
    held : Held
        The ids in the data, and declared names.
    sealed : collection of str
        Further paths to leave out, because they were searched when they were written.
    clean : collection of str
        Paths of Parquet and safetensors files that `scan_contents` has searched for these people already, with nothing
        found: they are counted, and not read again.
    follow : callable
        Called with the number of bytes to search; it returns a context that yields a function, which is called with the
        bytes of each file done.

    Returns
    -------
    Scan
        What was searched, and every residue.

    Raises
    ------
    erasable.errors.WorkspaceError
        If a file can't be read or unpacked.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     _ = Path(place, "orders.csv").write_text("customer_id,item_id\\ncustomer-1,tea\\n")
    ...     found = scan_folder(Path(place), [Target("customer-1")], Vocabulary())
    >>> found.clean, found.residues[0].place
    (False, 'column customer_id')
    """
    arguments = _ScanArguments(folder, targets, vocabulary, skip, held, sealed, frozenset(clean))
    for _ in range(_TIMES - 1):
        with suppress(_Vanished):
            return _followed(arguments, follow)
    return _followed(arguments, follow)


@dataclass(frozen=True, eq=False)
class _ScanArguments:
    """The arguments of `scan_folder`."""

    root: Path
    targets: Sequence[Target]
    vocabulary: Vocabulary
    skip: Collection[str]
    held: Held
    sealed: Collection[str]
    clean: frozenset[str]

    @cached_property
    def left_out(self) -> frozenset[str]:
        """The paths that are not searched."""
        return frozenset({*self.skip, *self.sealed})


def _followed(arguments: _ScanArguments, follow: Follow) -> Scan:
    # Files that appear meanwhile are searched too, and counted beyond the announced total.
    with follow(_weight(arguments.root, arguments.left_out)) as advance:
        return _scanned(arguments, advance)


def _scanned(arguments: _ScanArguments, advance: Advance) -> Scan:
    evidence = Evidence(Wanted(arguments.targets), arguments.vocabulary.saying(OWN_WORDS), arguments.held)
    kinds: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
    size = raw_only = 0
    entries = sorted(_entries(arguments.root, arguments.left_out), key=lambda entry: (entry.order, entry.name))
    # File names of the vocabulary occur inside its files too.
    names = (entry.shown.rsplit("/", 1)[-1] for entry in entries)
    evidence.note_ids(name for name in names if arguments.vocabulary.names.fullmatch(name))
    for entry in entries:
        file = File(entry.shown, evidence)
        search_name(file, entry.shown.rsplit("/", 1)[-1])
        if not entry.is_folder:
            with closing(entry.source()) as source:
                kind = _kind(entry) if entry.name in arguments.clean else _search(entry, file, source)
            kinds[kind] += 1
            size += source.size
            raw_only += kind == "other" and source.size > 0 and not entry.is_link
            advance(source.size + 1)
    said = searched(
        evidence.wanted,
        raw_only,
        len(arguments.skip),
        bool(arguments.sealed),
        bool(arguments.held.declared),
        any(arguments.vocabulary.item_tables.fullmatch(entry.shown) for entry in entries),
    )
    return Scan(sum(kinds.values()), size, dict(kinds), said, evidence.residues)


def scan_contents(
    contents: Mapping[str, bytes],
    targets: Sequence[Target],
    vocabulary: Vocabulary,
    not_people: Collection[str] = (),
    declared: tuple[str, ...] = (),
) -> tuple[Residue, ...]:
    """Search files that are about to be written.

    Parameters
    ----------
    contents : mapping of str to bytes
        What each file will hold, by its path below the folder.
    targets : sequence of Target
        The people to search for.
    vocabulary : Vocabulary
        Words, fields and files that name nobody.
    not_people : collection of str
        Further texts that mean something other than a person, such as ids of requests.
    declared : tuple of str
        Names of issuers, as in `Held`.

    Returns
    -------
    tuple of Residue
        The residues found.

    Examples
    --------
    >>> found = scan_contents({"note.json": b'{"user": "customer-1"}'}, [Target("customer-1")], Vocabulary())
    >>> found[0].file, found[0].what
    ('note.json', 'id')
    """
    evidence = Evidence(Wanted(targets), vocabulary.saying(OWN_WORDS), Held(declared=declared))
    evidence.note_ambiguous(not_people)
    for name, content in contents.items():
        search_file(File(name, evidence), BytesInMemory(content), name, lambda: EMPTY)
    return evidence.residues


def naming(texts: Iterable[str], targets: Sequence[Target], vocabulary: Vocabulary) -> frozenset[str]:
    """Return the texts that hold data of some people, searched as file names and as contents.

    Parameters
    ----------
    texts : iterable of str
        Names of files and folders, or other texts that are to be shown.
    targets : sequence of Target
        The people who must not be named.
    vocabulary : Vocabulary
        Words, fields and files that name nobody.

    Returns
    -------
    frozenset of str
        The texts that name one of them.

    Examples
    --------
    >>> naming(["report.pdf", "customer-1.pdf"], [Target("customer-1")], Vocabulary())
    frozenset({'customer-1.pdf'})
    """
    wanted, words = Wanted(targets), vocabulary.saying(OWN_WORDS)
    found = set[str]()
    for text in {*texts}:
        evidence = Evidence(wanted, words)
        search_name(File("", evidence), text)
        search_file(File("", evidence), BytesInMemory(text.encode("utf-8", "backslashreplace")), "", lambda: EMPTY)
        if evidence.residues:
            found.add(text)
    return frozenset(found)


def _kind(entry: "_Entry") -> Kind:
    """Return the kind of a file that was searched elsewhere."""
    return "parquet" if entry.name.endswith(".parquet") else "safetensors"


def _search(entry: "_Entry", file: File, source: Source) -> Kind:
    if not entry.is_link:
        return search_file(file, source, entry.shown, entry.database)
    for part in whole(source).decode("utf-8", "backslashreplace").split("/"):
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
        """The name in printable form."""
        return os.fsencode(self.name).decode("utf-8", "backslashreplace")

    def source(self) -> Source:
        """Return the content of a file, or the target of a link."""
        return self._reached(source_of)

    def start(self) -> bytes:
        """Return the beginning of a file."""
        return whole(self._reached(lambda path: BytesInMemory(read_file(path, _START))))

    def _reached(self, read: Callable[[Path], Source]) -> Source:
        path = self.root / self.name
        try:
            if self.is_link:
                return BytesInMemory(os.fsencode(path.readlink()))
            # Pipes and sockets hold nothing, and reading them would block.
            if not stat.S_ISREG(path.stat().st_mode):
                return EMPTY
            return read(path)
        except FileNotFoundError as error:
            raise _Vanished(str(_unreadable(path, error))) from error
        except OSError as error:
            raise _unreadable(path, error) from error

    def database(self) -> Source:
        """Return the database that a journal belongs to; empty if there is none."""
        ending = next((ending for ending in JOURNAL_ENDINGS if self.name.endswith(ending)), None)
        beside = _Entry(self.root, self.name.removesuffix(ending)) if ending else None
        return beside.source() if beside and (self.root / beside.name).is_file() else EMPTY


def _weight(root: Path, skip: Collection[str]) -> int:
    """Return the total of a scan for its progress: the bytes of each file plus one, so that small files count."""
    weight = 0
    for place, _, names in os.walk(root):
        below = "" if place == os.fspath(root) else f"{os.path.relpath(place, root)}/"
        for name in names:
            if f"{below}{name}" not in skip:
                with suppress(OSError):  # gone meanwhile: the search finds out whether that matters
                    weight += os.lstat(os.path.join(place, name)).st_size + 1
    return weight


def _entries(root: Path, skip: Collection[str]) -> Iterator[_Entry]:
    def refuse(error: OSError) -> None:
        raise _unreadable(Path(error.filename or root), error)

    # Paths are joined as text for speed: a hundred thousand certificates may be skipped.
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
    return _Entry(root, name, search_order(_Entry(root, name).start()))


def _unreadable(path: Path, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"{path} can't be read ({error.strerror}), so nobody can tell whose data it holds: check that you "
        "may read it, and that nobody changes it meanwhile"
    )


def source_of(path: Path) -> Source:
    """Return the content of a file: in memory if it is small, else read in pieces."""
    size = path.stat().st_size
    if size <= _source.PIECE:
        return BytesInMemory(read_file(path))
    return ReadElsewhere(path, size) if _may_be_database_in_use(path) else OnDisk.of(path)


def read_file(path: Path, most: int = -1) -> bytes:
    """Return the content of a file, or its beginning; a database that may be in use is read by another process."""
    if _may_be_database_in_use(path):
        ways = ["cat", "--"] if most < 0 else ["head", f"-c{most}", "--"]
        return by_another_process(*ways, path)
    with path.open("rb") as file:
        return file.read(most)


def _may_be_database_in_use(path: Path) -> bool:
    beside = (path.with_name(path.name + ending) for ending in _BESIDE_DATABASES)
    return path.name.endswith(_BESIDE_DATABASES) or any(other.exists() for other in beside)
