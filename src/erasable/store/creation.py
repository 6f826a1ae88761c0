"""Where a new workspace may be made, and how all of it is removed again when learning fails."""

import os
from contextlib import suppress
from pathlib import Path

from erasable.errors import Said, WorkspaceError
from erasable.store import files, layout
from erasable.store.leftovers import sweep
from erasable.store.sealing import NamedFiles


def refuse_occupied(root: Path) -> None:
    """Refuse a path that holds anything but nothing, or the rest of a learn that was killed."""
    if not os.path.exists(root):
        return
    if not root.is_dir():
        raise WorkspaceError(f"{root} is no folder: give a new folder, or an empty one")
    if (root / layout.MANIFEST).exists():
        raise WorkspaceError(
            f"{root} holds a workspace already: add to it with ",
            Said("learn_more", "--more"),
            ", give another folder, or delete that one first, with its certificates and its key",
        )
    if not layout.is_empty(root) and not _is_unfinished(root):
        raise WorkspaceError(f"{root} is not empty: give a new folder, or an empty one")


def make_missing_folders(root: Path, made: list[Path], mode: int | None) -> None:
    """Make the folder and its missing parents, and note each one."""
    if root.is_dir():
        return
    make_missing_folders(root.parent, made, mode=None)
    # Noted first, so that an interrupt right after the folder is made finds it on the list.
    made.append(root)
    files.make_folder(root, mode)


def remove_folders(made: list[Path]) -> None:
    """Remove the folders that were made, as far as they are empty."""
    for folder in reversed(made):
        with suppress(WorkspaceError):
            files.remove_folder(folder)
            files.flush_folder(folder.parent)


def clear(root: Path) -> None:
    """Remove everything of a workspace from its folder; what can't be removed is swept by the next learn."""
    with suppress(WorkspaceError, OSError):
        # The manifest first: without it the rest counts as unfinished, should this be stopped half way.
        files.remove_file(root / layout.MANIFEST)
        files.flush_folder(root)
        sweep(root, NamedFiles())
        for folder in layout.FOLDERS:
            if (root / folder).is_dir():
                files.remove_folder(root / folder)
        # The writer's lock is the last of them: it tells that the folder is ours.
        for lock in layout.LOCKS:
            files.remove_file(root / lock)
        files.flush_folder(root)


def _is_unfinished(root: Path) -> bool:
    # The lock is the first file that a learn makes, so that a folder of someone else is never taken for ours.
    return (root / layout.WRITER_LOCK).exists() and not layout.foreign_entries(root)
