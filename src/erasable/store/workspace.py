"""The workspace: one readable folder that holds a recommender; a new manifest makes a new version current."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from erasable.errors import ErasableError, WorkspaceError, WrongUse
from erasable.store import files, layout
from erasable.store.checkpoints import DiskCheckpoints
from erasable.store.creation import clear, make_missing_folders, refuse_occupied, remove_folders
from erasable.store.folder import CheckedFolder
from erasable.store.leftovers import sweep, sweep_as_reader
from erasable.store.loading import StoredGroups, load_state
from erasable.store.locks import exclusive_reader_lock, shared_reader_lock, writer_lock
from erasable.store.manifest import Manifest, encode_manifest
from erasable.store.opening import existing_workspace, read_manifest
from erasable.store.saving import Version, write_version
from erasable.training import State

_NO_CERTIFICATES: Mapping[str, bytes] = MappingProxyType({})


class Workspace:
    """An open workspace; get one with `creating`, `writing` or `reading`, and use it inside the block."""

    def __init__(self, path: Path, manifest: Manifest | None, writable: bool) -> None:
        self.path = path
        self._writable = writable
        self._folder = CheckedFolder(path, {})
        self._checkpoints = DiskCheckpoints(self._folder, writable)
        self._manifest: Manifest | None = None
        self._state: State | None = None
        self.next_salt = secrets.token_hex(32)
        """The salt of the version that the next commit makes; certificates need it before."""
        self.leftovers: tuple[str, ...] = ()
        """Files that a killed command left, perhaps of someone erased, and that a reader here can't remove."""
        if manifest is not None:
            self._adopt(manifest)

    @classmethod
    @contextmanager
    def creating(cls, path: str | Path) -> Iterator["Workspace"]:
        """Make a new workspace; unless the block commits and ends well, everything made is removed again."""
        root, made, done = Path(path), list[Path](), False
        refuse_occupied(root)
        try:
            make_missing_folders(root, made)
            with writer_lock(root):
                # Again, now that nobody else can write there.
                refuse_occupied(root)
                try:
                    sweep(root, named=())
                    workspace = cls(root, None, writable=True)
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
    def writing(cls, path: str | Path) -> Iterator["Workspace"]:
        """Be the only writer of a workspace; what is not committed when the block ends is swept away."""
        root = existing_workspace(path)
        with writer_lock(root):
            manifest = read_manifest(root)
            sweep(root, manifest.files)
            try:
                yield cls(root, manifest, writable=True)
            finally:
                # What can't be swept now is swept by the next writer; the first error is the one to tell.
                with suppress(ErasableError, OSError):
                    sweep(root, read_manifest(root).files)

    @classmethod
    @contextmanager
    def reading(cls, path: str | Path) -> Iterator["Workspace"]:
        """Read a workspace, rid of what a killed command left; a commit waits for the block to end: keep it short."""
        root = existing_workspace(path)
        with shared_reader_lock(root):
            workspace = cls(root, read_manifest(root), writable=False)
            workspace.leftovers = sweep_as_reader(root, workspace.manifest.files)
            yield workspace

    @property
    def manifest(self) -> Manifest:
        """What is current."""
        if self._manifest is None:
            raise WorkspaceError(f"{self.path} holds nothing yet: commit a state first")
        return self._manifest

    @property
    def checkpoints(self) -> DiskCheckpoints:
        """The checkpoints on disk."""
        return self._checkpoints

    @property
    def environment(self) -> dict[str, str]:
        """The numeric environment that trained the checkpoints."""
        return self.manifest.environment

    @property
    def version(self) -> int:
        """1 after learning, one more for each commit."""
        return self.manifest.version

    @property
    def erasures(self) -> int:
        """How many erasures there were, one certificate for each."""
        return len(self._manifest.certificates) if self._manifest else 0

    def issued(self) -> dict[str, bytes]:
        """Return the certificates by request id, oldest first, each found unchanged."""
        names = self._manifest.certificates if self._manifest else ()
        return {name.removesuffix(".json"): self._folder.read(f"{layout.CERTIFICATES}/{name}") for name in names}

    def state(self) -> State:
        """Return the state; a group's data is read when it is first asked for, inside the block."""
        if self._state is None:
            self._state = load_state(self._folder, self.manifest)
        return self._state

    def commit(self, state: State, certificates: Mapping[str, bytes] = _NO_CERTIFICATES) -> None:
        """Make a state current and destroy every file of the version before that it does not share.

        Its checkpoints are in `checkpoints` already. Certificates go by request id and are added to those
        there.
        """
        if not self._writable:
            raise WrongUse("the workspace is open for reading: open it with Workspace.writing to commit")
        manifest = write_version(state, certificates, self._version(), self.next_salt)
        files.write_file(self.path / layout.NEW_MANIFEST, encode_manifest(manifest))
        with exclusive_reader_lock(self.path):
            files.replace_file(self.path / layout.NEW_MANIFEST, self.path / layout.MANIFEST)
            self._adopt(manifest)
            sweep(self.path, manifest.files)

    def _version(self) -> Version:
        groups = self._state.knowledge.groups if self._state else None
        handed_out = groups if isinstance(groups, StoredGroups) else None
        return Version(self._manifest, self._folder, self._checkpoints, handed_out)

    def _adopt(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._folder.adopt(manifest.files)
        self._checkpoints.adopt(manifest.chain)
        self._state = None
        # Each version has its own salt, also when one block commits twice.
        self.next_salt = secrets.token_hex(32)
