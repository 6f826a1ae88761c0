"""The scan: does any file in a folder still hold data of people who were erased?

`scan_folder(folder, targets, vocabulary)` returns a `Scan` with every `Residue`. It knows nothing of the program that
wrote the files: its words, fields and file names are passed as `vocabulary`. The README.md here says what is searched.

`_target` holds what to look for, and `_wanted` prepares it: needles in all encodings, runs of values. `_folder` goes
through the files and `_files` tells their kind. `_arrays`, `_texts` and `_sqlite` with `_sqlite_pages` search them, as
decoded `_tables` of `_columns`, whose names tell users from items, and as bytes. `_evidence` judges each hit against
the ids in the data and the vocabulary.
"""

from erasable.scan._folder import (
    PERSONAL,
    PERSONAL_OR_SHARED,
    TEXTS,
    TEXTS_IF_ANY,
    UNKNOWN,
    Follow,
    naming,
    scan_contents,
    scan_folder,
    unfollowed,
)
from erasable.scan._target import Held, Residue, Rows, Scan, Target, Vocabulary

__all__ = [
    "PERSONAL",
    "PERSONAL_OR_SHARED",
    "TEXTS",
    "TEXTS_IF_ANY",
    "UNKNOWN",
    "Follow",
    "Held",
    "Residue",
    "Rows",
    "Scan",
    "Target",
    "Vocabulary",
    "naming",
    "scan_contents",
    "scan_folder",
    "unfollowed",
]
