"""The workspace: opening it to create, write or read, committing versions, and sweeping what no version names."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from erasable.chain.buckets import Bucket
from erasable.chain.dataset import State
from erasable.documents import says_more
from erasable.errors import ErasableError, Said, WorkspaceError, WrongUse
from erasable.models.base import Model
from erasable.workspace import files
from erasable.workspace._sweeping import (
    clear,
    remove_folders,
    sweep,
    sweep_as_reader,
    sweep_at_opening,
    unnamed_files,
)
from erasable.workspace._versions import (
    IssuedFiles,
    Version,
    load_state,
    write_documents,
    write_version,
)
from erasable.workspace.checkpoints import DiskCheckpoints
from erasable.workspace.dealing import Dealing, dealing
from erasable.workspace.declared_items import decode_declared
from erasable.workspace.files import exclusive_reader_lock, shared_reader_lock, writer_lock
from erasable.workspace.folder import (
    CheckedFolder,
    NamedFiles,
    SealedDocuments,
    existing_workspace,
    mark_of,
    read_manifest,
    read_whole,
)
from erasable.workspace.manifest import NO_DOCUMENTS, Documents, Manifest, Preferences, Stamp, damaged, encode_manifest
from erasable.workspace.scratch import Scratch, ScratchGone, scratch_below
from erasable.workspace.tables import StoredFile, decoded, keep_bucket

__all__ = ["Workspace", "sweep", "sweep_as_reader", "unnamed_files"]


def refuse_occupied(root: Path) -> None:
    """Refuse a path that is not free; the remains of a killed learn count as free."""
    if not os.path.exists(root):
        return
    if not root.is_dir():
        raise WorkspaceError(f"{root} is not a folder: give a new folder, or an empty one")
    if (root / files.MANIFEST).exists():
        raise WorkspaceError(
            f"{root} holds a workspace already: add to it with ",
            Said("learn_more", "--more"),
            ", give another folder, or delete that one first, with its certificates "
            "and signing key; the do-not-learn list beside it stays",
        )
    if not files.is_empty(root) and not _is_unfinished(root):
        raise WorkspaceError(f"{root} is not empty: give a new folder, or an empty one")


def make_missing_folders(root: Path, made: list[Path], mode: int | None) -> None:
    """Make the folder and its missing parents, and record each one."""
    if root.is_dir():
        return
    make_missing_folders(root.parent, made, mode=None)
    # Recorded first, so that an interrupt right after the folder is made finds it on the list.
    made.append(root)
    files.make_folder(root, mode)


def _is_unfinished(root: Path) -> bool:
    # A learn makes the lock file first, so that someone else's folder is never taken for ours.
    return (root / files.WRITER_LOCK).exists() and not files.foreign_entries(root)


class Workspace:
    """An open workspace; get one with `creating`, `writing` or `reading`, and use it inside the block."""

    def __init__(self, path: Path, manifest: Manifest | None, writable: bool, mode: int = files.OWNER_ONLY) -> None:
        self.path = path
        self._writable = writable
        self._folder = CheckedFolder(path, {}, mode)
        self._checkpoints = DiskCheckpoints(self._folder, writable)
        self._sealed = SealedDocuments(self._folder)
        self._manifest: Manifest | None = None
        self._state: State | None = None
        self._fence: Callable[[], None] | None = None
        self._model: type[Model] | None = None
        self.leftovers: tuple[str, ...] = ()
        """Files of a killed command that a reader can't remove; they may hold data of someone erased."""
        if manifest is not None:
            self._adopt(manifest)

    @classmethod
    @contextmanager
    def creating(cls, path: str | Path, readable_by_group: bool = False) -> Iterator["Workspace"]:
        """Make a new workspace; unless the block commits and ends without an error, everything is removed again."""
        root, made, done = Path(path), list[Path](), False
        mode = files.OWNER_AND_GROUP if readable_by_group else files.OWNER_ONLY
        refuse_occupied(root)
        try:
            make_missing_folders(root, made, mode)
            with writer_lock(root):
                # Again, now that nobody else can write there.
                refuse_occupied(root)
                try:
                    sweep(root, NamedFiles())
                    workspace = cls(root, None, writable=True, mode=mode)
                    yield workspace
                    done = workspace._manifest is not None
                finally:
                    if not done:
                        clear(root)
        finally:
            if not done:
                remove_folders(made)

    @classmethod
    @contextmanager
    def writing(
        cls,
        path: str | Path,
        fence: Callable[[], None] | None = None,
        model: type[Model] | None = None,
        waiting: Callable[[], None] | None = None,
    ) -> Iterator["Workspace"]:
        """Open a workspace as its only writer; what is not committed when the block ends is swept away.

        A fence is called before each commit, and raises if this writer may no longer write. Pass the model's class if
        the model is not registered. A second writer is refused; with `waiting`, that is called and the writer waits.
        """
        root = existing_workspace(path)
        with writer_lock(root, waiting):
            manifest = read_manifest(root)
            sweep_at_opening(root, NamedFiles.of(root, manifest))
            try:
                workspace = cls(root, manifest, writable=True)
                workspace._fence, workspace._model = fence, model
                yield workspace
            finally:
                # The next writer sweeps what can't be swept now; the first error must not be hidden.
                with suppress(ErasableError, OSError):
                    sweep_at_opening(root, NamedFiles.of(root, read_manifest(root)))

    @classmethod
    @contextmanager
    def reading(
        cls, path: str | Path, sweeping: bool = True, model: type[Model] | None = None
    ) -> Iterator["Workspace"]:
        """Open a workspace to read it, after sweeping what a killed command left; keep the block short: commits wait.

        A scan for such remains opens it without sweeping. Pass the model's class if the model is not registered.
        """
        root = existing_workspace(path)
        with shared_reader_lock(root):
            workspace = cls(root, read_manifest(root), writable=False)
            workspace._model = model
            if sweeping:
                workspace.leftovers = sweep_as_reader(root, NamedFiles.of(root, workspace.manifest))
            yield workspace

    @classmethod
    def of_a_task(cls, root: Path, version: int) -> "Workspace":
        """Return a version to read for a task; its command sees to it that the version stays, or ends the task."""
        workspace = cls(root, read_manifest(root), writable=False)
        if workspace.stamp.version != version:
            raise ScratchGone
        return workspace

    @staticmethod
    def mark(path: str | Path) -> tuple[int, int, int]:
        """Return numbers that differ after each commit; cheap enough to poll."""
        return mark_of(existing_workspace(path))

    @property
    def manifest(self) -> Manifest:
        """The current manifest."""
        if self._manifest is None:
            raise WorkspaceError(f"{self.path} holds nothing yet: commit a state first")
        return self._manifest

    @property
    def checkpoints(self) -> DiskCheckpoints:
        """The checkpoints on disk."""
        return self._checkpoints

    @property
    def format(self) -> int:
        """The format of the manifest file."""
        return self.manifest.written_in

    @property
    def newer(self) -> bool:
        """Whether the manifest has fields that this version does not know."""
        return says_more(self.manifest)

    @property
    def stamp(self) -> Stamp:
        """The number and the salt of the current version."""
        return Stamp(self.manifest.version, self.manifest.salt)

    @property
    def erasures(self) -> int:
        """The number of erasures, each of which has one certificate."""
        if self._manifest is None:
            return 0
        not_sealed = sum(name.endswith(".json") for name in self._manifest.certificates)
        return not_sealed + sum(record.erasures for record in self._manifest.segments)

    def issued(self) -> Mapping[str, bytes]:
        """Return the certificates by file name, oldest first; each is checked when it is read."""
        names = self._manifest.certificates if self._manifest else ()
        return IssuedFiles(names, lambda name: self._folder.read(files.certificate_name(name)), self._sealed)

    def documents(self) -> Documents:
        """Return the current documents, checked, without the certificates.

        Only the owner of the workspace may read the key and pending requests; for other readers they are empty.
        """
        names = (self.manifest.audit, self.manifest.key, self.manifest.pending)
        log, key, pending = map(self._document, names)
        return Documents(
            *(log, key, pending),
            key_hidden=self.manifest.key is not None and self._is_hidden(self.manifest.key),
            preferences=self.manifest.preferences,
            sealed_records=self._sealed.log,
        )

    def declared_items(self) -> pa.Table | None:
        """Return which items are hidden, and their attributes; None if nothing was declared."""
        name = self.manifest.declared_items
        return None if name is None else decoded(self._folder, name, decode_declared)

    @property
    def size(self) -> int:
        """The size of the current version's files in bytes."""
        paths = [self.path / name for name in self.manifest.files]
        return sum(path.stat().st_size for path in paths if path.exists())

    def refuse_if_full(self, needed: int) -> None:
        """Refuse to start if the disk has less room than is needed."""
        files.refuse_if_full(self.path, needed)

    def dealing(self, seed: int, most: int | None = None) -> AbstractContextManager[Dealing]:
        """Deal rows out to shares of the slots, on disk if there are many; nothing of it is left afterwards."""
        self._check_writable()
        return dealing(seed, self.path, most)

    def keep(self, bucket: Bucket, number: int, seed: int, groups: int) -> StoredFile:
        """Write a bucket: durable when this returns, current after the next commit."""
        self._check_writable()
        return keep_bucket(self._folder, bucket, number, seed, groups)

    def scratch(self) -> AbstractContextManager[Scratch]:
        """Make a folder for the files of remote tasks; nothing of it is left afterwards."""
        return scratch_below(self.path)

    @property
    def current_files(self) -> tuple[str, ...]:
        """The files of the current version."""
        return tuple(sorted(self.manifest.files))

    @property
    def pending_files(self) -> tuple[str, ...]:
        """The file of the requests that are being carried out, if there are any."""
        return () if self.manifest.pending is None else (self.manifest.pending,)

    @property
    def sealed_files(self) -> frozenset[str]:
        """The files of finished documents, which were scanned when they were sealed."""
        segments = {name for record in self.manifest.segments for name in (record.certificates, record.log)}
        requests = () if self.manifest.requests is None else (self.manifest.requests,)
        return frozenset({*segments, *requests, *map(files.certificate_name, self._sealed.certificates)})

    def damaged(self) -> list[str]:
        """Return the files that are missing or changed; private ones that can't be read are left out."""
        private = [name for name in (self.manifest.key, self.manifest.pending, self.manifest.requests) if name]
        # A damaged segment can't be read, so its certificates can't be checked.
        return self._folder.damaged(private) or self._sealed.damaged()

    def unchecked_log(self) -> bytes:
        """Return the log without checking its hash, to find where it was changed."""
        parts = [*(record.log for record in self.manifest.segments), self.manifest.audit]
        return b"".join(read_whole(self.path / name) for name in parts if name)

    def state(self) -> State:
        """Return the state; a group's data is read when first used, while the workspace is open."""
        return self._state or self._held(load_state(self._folder, self.manifest, self._model))

    def commit(self, state: State, documents: Documents = NO_DOCUMENTS, stamp: Stamp | None = None) -> None:
        """Make a state current, and remove the files that only the previous version used.

        Its checkpoints must be in `checkpoints` already. Without a stamp the version gets the next number.
        """
        self._check_writable()
        stamp = stamp or Stamp.after(self._manifest.version if self._manifest else 0)
        self._make_current(write_version(state, documents, self._version(), stamp), replaced=True)

    def amend(self, documents: Documents) -> None:
        """Replace the documents, keeping state and version; checkpoints that are not committed are removed."""
        self._check_writable()
        state = self._state
        # First, since uncommitted files may be what fills the disk.
        self._adopt(self.manifest)
        sweep(self.path, NamedFiles.of(self.path, self.manifest))
        self._make_current(write_documents(documents, self.manifest, self._folder))
        if state is not None:
            self._held(state)

    def prefer(self, preferences: Preferences) -> None:
        """Set preferences, to be written with the next commit or amendment."""
        self._manifest = self.manifest.model_copy(update={"preferences": preferences})

    def _held(self, state: State) -> State:
        """Cache the state of the current version, and register its checkpoints under today's names."""
        self._state = state
        self._checkpoints.hand_on(state.chain, state.recorded)
        return state

    def _document(self, name: str | None) -> bytes:
        """Return a document; a named one that is empty is damaged, even if its hash fits."""
        if name is None or self._is_hidden(name):
            return b""
        content = self._folder.read(name)
        if not content:
            raise damaged(self.path / name)
        return content

    def _is_hidden(self, name: str) -> bool:
        path = self.path / name
        private = name in (self.manifest.key, self.manifest.pending)
        return private and not self._writable and path.exists() and not os.access(path, os.R_OK)

    def _check_writable(self) -> None:
        if not self._writable:
            raise WrongUse("the workspace is open for reading: open it with Workspace.writing to commit")

    def _make_current(self, manifest: Manifest, replaced: bool = False) -> None:
        new = self.path / files.NEW_MANIFEST
        files.write_file(new, encode_manifest(manifest), self._folder.mode)
        with exclusive_reader_lock(self.path):
            if self._fence is not None:
                self._fence()
            try:
                files.replace_file(new, self.path / files.MANIFEST)
            finally:
                # If interrupted right after the replacement, this object must not keep using the previous version.
                if not new.exists():
                    self._adopt(manifest)
            sweep(self.path, NamedFiles.of(self.path, manifest), replaced)

    def _version(self) -> Version:
        return Version(self._manifest, self._folder, self._checkpoints)

    def _adopt(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._folder.adopt(manifest.files)
        self._folder.mode = files.OWNER_AND_GROUP if manifest.preferences.readable_by_group else files.OWNER_ONLY
        self._checkpoints.adopt(manifest.chain)
        self._sealed = SealedDocuments(self._folder, manifest.segments)
        self._state = None
