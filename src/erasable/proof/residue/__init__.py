"""The residue scan: is anybody who was erased still held by a file below a folder?

What to look for (`target` → `wanted`: needles in all `encodings`, runs of `values`) is searched file by file (`folder`
→ `file_search`) by what a file is (`parquet_…`, `arrow_…`, `tensor_…`, `document_…` for JSON, `sqlite_…`,
`text_search`, `packed`): as decoded `tables` of `columns`, whose `field_names` tell users from items, and as bytes
(`raw_search`).
`evidence` judges hits against the ids that are held (`longer`) and the `vocabulary` of our own files; `wording` says
what was searched.
"""

from erasable.proof.residue.folder import Follow, naming, scan_contents, scan_folder, unfollowed
from erasable.proof.residue.target import Held, Residue, Scan, Target
from erasable.proof.residue.wording import PERSONAL, PERSONAL_OR_SHARED, TEXTS, TEXTS_IF_ANY

__all__ = [
    "PERSONAL",
    "PERSONAL_OR_SHARED",
    "TEXTS",
    "TEXTS_IF_ANY",
    "Follow",
    "Held",
    "Residue",
    "Scan",
    "Target",
    "naming",
    "scan_contents",
    "scan_folder",
    "unfollowed",
]
