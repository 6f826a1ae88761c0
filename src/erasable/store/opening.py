"""Opening what is there: is the folder a workspace, and what does its manifest say."""

import os
import shlex
from pathlib import Path

from erasable.errors import Said, WorkspaceDamaged, WorkspaceError
from erasable.store.folder import read_whole, refuse_links
from erasable.store.layout import FOLDERS, LEDGER_FILES, MANIFEST, own_files
from erasable.store.manifest import RESTORE, Manifest, decode_manifest

_LEARNED = Said("a folder that save made", "the folder that erasable learn made")


def existing_workspace(path: str | Path) -> Path:
    """Return the path of a workspace, or say why it is none."""
    root = Path(path)
    if not os.path.exists(root):
        raise WorkspaceError(
            f"there is no folder {root}: make one with ",
            Said(
                f"Recommender().fit(DATA).save({str(root)!r})", f"erasable learn DATA --into {shlex.quote(str(root))}"
            ),
        )
    if not root.is_dir():
        raise WorkspaceError(f"{root} is no folder: give ", _LEARNED)
    try:
        if (root / MANIFEST).exists():
            return root
    except PermissionError as error:
        raise WorkspaceError(
            f"{root} can't be read (Permission denied): be its owner, or in its group and have it learned with ",
            Said("inputs=Inputs(readable_by_group=True)", "--readable-by-group"),
        ) from error
    if own_files(root):
        raise WorkspaceDamaged(
            f"{root / MANIFEST} is missing: if a learn is running there, wait for it; if one was stopped, "
            f"learn again into the same folder; else {RESTORE}"
        )
    raise WorkspaceError(
        f"{root} is no workspace (it has no {MANIFEST}): give ",
        _LEARNED,
        ", or make one with ",
        Said("Recommender().fit(DATA).save('DIR')", "erasable learn DATA --into DIR"),
    )


def mark_of(root: Path) -> tuple[int, int, int]:
    """Return what another manifest in its place has another of, found without reading it."""
    found = (root / MANIFEST).stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def read_manifest(root: Path) -> Manifest:
    """Return the current manifest, found whole; nothing of the workspace lies behind a link."""
    refuse_links(root, (MANIFEST, *LEDGER_FILES, *FOLDERS))
    manifest = decode_manifest(read_whole(root / MANIFEST), str(root / MANIFEST))
    refuse_links(root, manifest.files)
    return manifest
