"""Files that no manifest names, such as a killed command leaves; only the holder of the writer lock removes them."""

from contextlib import suppress
from pathlib import Path

from erasable.errors import WorkspaceBusy, WorkspaceError
from erasable.store import files
from erasable.store.layout import own_files
from erasable.store.locks import writer_lock
from erasable.store.opening import read_manifest
from erasable.store.sealing import NamedFiles


def unnamed_files(root: Path, named: NamedFiles) -> tuple[str, ...]:
    """Return every file of a workspace that is not named."""
    return tuple(name for name in own_files(root, named.sealed) if name not in named.in_manifest)


def sweep(root: Path, named: NamedFiles) -> None:
    """Remove for good every file of a workspace that is not named; the caller holds the writer lock."""
    leftovers = [root / name for name in unnamed_files(root, named)]
    if leftovers:
        # A command killed right after it put the manifest there may not have made it durable; if the one before
        # came back after a power cut, it would name files that are gone.
        files.flush_folder(root)
    for path in leftovers:
        files.remove_file(path)
    for parent in sorted({path.parent for path in leftovers}):
        files.flush_folder(parent)


def sweep_at_opening(root: Path, named: NamedFiles) -> None:
    """Sweep, unless a named file is missing: an old manifest may have been put back, and the right one may follow."""
    if all((root / name).exists() for name in named.in_manifest):
        sweep(root, named)


def sweep_as_reader(root: Path, named: NamedFiles) -> tuple[str, ...]:
    """Remove what a killed command left, if no other command is writing, and return what can't be removed."""
    if not unnamed_files(root, named):
        return ()
    try:
        with suppress(WorkspaceBusy), writer_lock(root):
            # Read again: where no reader lock can be had, a commit may have come between.
            current = NamedFiles.of(root, read_manifest(root))
            sweep_at_opening(root, current)
            return unnamed_files(root, current)
        # Busy: those are the files of a writer at work, who sweeps.
        return ()
    except WorkspaceError:
        return unnamed_files(root, named)
