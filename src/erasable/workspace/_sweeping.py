"""Removing what no version names, and what a command that failed has made."""

from contextlib import suppress
from pathlib import Path

from erasable.errors import WorkspaceBusy, WorkspaceError
from erasable.workspace import files
from erasable.workspace.files import own_files, writer_lock
from erasable.workspace.folder import NamedFiles, read_manifest
from erasable.workspace.scratch import folders_in_use, remove_scratch, remove_unused, scratch_folders


def unnamed_files(root: Path, named: NamedFiles) -> tuple[str, ...]:
    """Return the workspace's own files that no version names; those of tasks that run now are not among them."""
    in_use = folders_in_use(root)
    found = (name for name in own_files(root, named.sealed) if name not in named.in_manifest)
    return tuple(name for name in found if not name.startswith(in_use))


def sweep(root: Path, named: NamedFiles, replaced: bool = False) -> None:
    """Remove, durably, the files that no version names; the caller holds the writer lock.

    Once a version is replaced, tasks that run on its data end too: nobody who was erased may be left in their files.
    """
    if replaced:
        for folder in scratch_folders(root):
            remove_scratch(root / folder)
    remove_unused(root)
    leftovers = [root / name for name in unnamed_files(root, named)]
    if leftovers:
        # A command killed right after it replaced the manifest may not have made that durable; if the previous
        # manifest came back after a power cut, it would name files that are gone.
        files.flush_folder(root)
    for path in leftovers:
        files.remove_file(path)
    for parent in sorted({path.parent for path in leftovers}):
        files.flush_folder(parent)


def sweep_at_opening(root: Path, named: NamedFiles) -> None:
    """Sweep, unless a named file is missing: someone may have restored an old manifest, and may yet correct it."""
    if all((root / name).exists() for name in named.in_manifest):
        sweep(root, named)


def sweep_as_reader(root: Path, named: NamedFiles) -> tuple[str, ...]:
    """Remove what a killed command left, unless another command is writing, and return what can't be removed."""
    if not unnamed_files(root, named):
        return ()
    try:
        with suppress(WorkspaceBusy), writer_lock(root):
            # Read again: without a reader lock, a commit may have happened in between.
            current = NamedFiles.of(root, read_manifest(root))
            sweep_at_opening(root, current)
            return unnamed_files(root, current)
        # Busy: the files belong to a running writer, who sweeps them.
        return ()
    except WorkspaceError:
        return unnamed_files(root, named)


def remove_folders(made: list[Path]) -> None:
    """Remove the folders that were made, if they are empty."""
    for folder in reversed(made):
        with suppress(WorkspaceError):
            files.remove_folder(folder)
            files.flush_folder(folder.parent)


def clear(root: Path) -> None:
    """Remove all files of a workspace; the next learn sweeps what can't be removed."""
    with suppress(WorkspaceError, OSError):
        # The manifest first: without it the rest counts as unfinished, should this be interrupted.
        files.remove_file(root / files.MANIFEST)
        files.flush_folder(root)
        sweep(root, NamedFiles())
        for folder in files.FOLDERS:
            if (root / folder).is_dir():
                files.remove_folder(root / folder)
        # The writer lock last: it marks the folder as ours.
        for lock in files.LOCKS:
            files.remove_file(root / lock)
        files.flush_folder(root)
