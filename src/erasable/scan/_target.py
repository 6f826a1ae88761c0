"""The input and output of a scan: people to search for, ids in the data, vocabulary, and residues."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Arrow's annotations change between versions; it checks types at run time.
ArrowColumn: TypeAlias = Any
Texts: TypeAlias = Any
"""Distinct texts, as an Arrow array or any sequence; an array is faster for many."""
Floats = NDArray[np.float64]
Values = NDArray[Any] | Sequence[float]
What = Literal["id", "interactions", "personal row", "text"]
_NEVER = re.compile("(?!)")
_WORD = re.compile(r"[\w-]+")


@dataclass(frozen=True, eq=False)
class Rows:
    """A person's interactions, searched as values where no user is named.

    Parameters
    ----------
    items : sequence of str
        The item of each interaction.
    ratings : array or sequence of float
        Its rating; compared in single precision.
    times : array or sequence of float, optional
        Its time in seconds; NaN if unknown.
    """

    items: Sequence[str]
    ratings: Values
    times: Values | None = None


@dataclass(frozen=True, eq=False)
class Target:
    """What to search for about one person.

    Parameters
    ----------
    user : str
        The person's id, exactly as written in the data.
    items : tuple of str, optional
        The items whose interactions were erased, if the person stays; everything if not given.
    rows : Rows, optional
        The erased interactions, if still known.
    personal : tuple of array
        The person's rows of the model before the erasure.
    texts : tuple of str
        Other texts that must be gone, such as fingerprints of removed checkpoints.
    own_items : tuple of str
        Items that nobody else has, which are gone with the person.
    """

    user: str
    items: tuple[str, ...] | None = None
    rows: Rows | None = None
    personal: tuple[NDArray[Any], ...] = ()
    texts: tuple[str, ...] = ()
    own_items: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Held:
    """The ids in the data; only these explain a hit inside something longer.

    Parameters
    ----------
    users, items : tuple of texts
        Lists of ids, each an Arrow array or a sequence of str.
    declared : tuple of str
        Names of issuers, which don't count as whole values in the files of `Vocabulary.declaring`.
    """

    users: tuple[Texts, ...] = ()
    items: tuple[Texts, ...] = ()
    declared: tuple[str, ...] = ()


NOTHING_HELD = Held()


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words, fields and files of the program that runs the scan; they name nobody.

    Everything is empty by default: then no file is known, and each is searched like any other. Patterns must match a
    whole name, or a whole path below the folder, with slashes.

    Parameters
    ----------
    wording : str
        The words in the program's files besides sentences, one text a line.
    fields : frozenset of str
        Fields of its documents. They hold no user id, unless they are named like a user.
    free_form : frozenset of str
        Those fields that hold other names, but none of a person: libraries, files, measures.
    names : pattern
        Names of its files and folders.
    documents : pattern
        Paths of its JSON documents, whose fields are known.
    places : pattern
        Texts in them that name a file outside the folder.
    pages : pattern
        Paths of its HTML pages, which consist of sentences.
    style : str
        Their style sheet.
    declaring : pattern
        Paths of documents and pages that show the names in `Held.declared`.
    databases : pattern
        Paths of its SQLite files.
    schema : frozenset of str
        Names in their schema.
    people_tables : frozenset of str
        Their tables that hold ids of people.
    free_text_columns : frozenset of str
        The columns of their other tables that hold text typed in.
    made_up : mapping of str to pattern
        Generated values in their other tables, by the last word of the column's name: ids, digests, times.
    tensors : pattern
        Names of its tensors.
    metadata : str
        The metadata key of its tensor files.
    """

    wording: str = ""
    fields: frozenset[str] = frozenset()
    free_form: frozenset[str] = frozenset()
    names: re.Pattern[str] = _NEVER
    documents: re.Pattern[str] = _NEVER
    places: re.Pattern[str] = _NEVER
    pages: re.Pattern[str] = _NEVER
    style: str = ""
    declaring: re.Pattern[str] = _NEVER
    databases: re.Pattern[str] = _NEVER
    schema: frozenset[str] = frozenset()
    people_tables: frozenset[str] = frozenset()
    free_text_columns: frozenset[str] = frozenset()
    made_up: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    tensors: re.Pattern[str] = _NEVER
    metadata: str = ""

    def saying(self, texts: Iterable[str]) -> "Vocabulary":
        """Return the vocabulary with more texts in its wording."""
        return replace(self, wording="\n".join([self.wording, *texts]))

    def words(self) -> frozenset[str]:
        """Return the words of the wording."""
        return frozenset(_WORD.findall(self.wording))

    def says(self, text: str) -> bool:
        """Whether a text is in the wording, and not part of a longer word."""
        return re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", self.wording) is not None


@dataclass(frozen=True)
class Residue:
    """One place that still holds data of a person.

    Attributes
    ----------
    file : str
        The path below the folder, with slashes.
    place : str
        Where in the file, in words.
    what : str
        "id", "interactions", "personal row" or "text".
    of : tuple of str
        The searched ids, items or texts found there; empty if only values were found.
    """

    file: str
    place: str
    what: What
    of: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Scan:
    """What was searched, how, and what was found.

    Attributes
    ----------
    files, bytes : int
        How much was searched.
    kinds : dict of str to int
        The number of files read as parquet, arrow, safetensors, json, sqlite, text and other.
    searched : tuple of str
        What was searched and how, in sentences free of personal data.
    residues : tuple of Residue
        What was found.
    """

    files: int
    bytes: int
    kinds: dict[str, int]
    searched: tuple[str, ...]
    residues: tuple[Residue, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.residues
