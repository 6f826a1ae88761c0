"""The sentences of a scan about what was searched and how, free of personal data."""

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
_AS_NUMBERS = "was searched as float16, bfloat16, float32 and float64, and as decoded numbers in single precision."
PERSONAL = f"The person's row of the model {_AS_NUMBERS}"
PERSONAL_OR_SHARED = f"The person's row of the model, unless someone who stays has the same, {_AS_NUMBERS}"
"""Used in certificates: saying which rows someone else shares would reveal people with little data."""
_LIKE_IDS = "were searched like ids of 8 bytes or more."
TEXTS = f"Texts that must be gone, such as names of destroyed checkpoints, {_LIKE_IDS}"
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
    wanted: Wanted, raw_only: int, skipped: int, sealed: bool = False, declared: bool = False
) -> tuple[str, ...]:
    """Return what was searched and how; so many files were searched as raw bytes only, and so many left out.

    Nothing personal is counted: neither interactions nor the length of an id.
    """
    known = [target.rows is not None for target in wanted.targets]
    rules = {
        PAIRS: bool(wanted.pairs),
        VALUES: any(known),
        UNKNOWN: not all(known),
        PERSONAL: any(target.personal for target in wanted.targets),
        TEXTS: bool(wanted.texts),
    }
    said = [NAMES, CONTENTS, FIELDS, ENCODINGS, *(sentence for sentence, applies in rules.items() if applies)]
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
