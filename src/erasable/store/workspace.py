"""The workspace: one readable folder that holds a recommender; a new manifest makes a new version current."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from erasable.documents import says_more
from erasable.errors import ErasableError, WorkspaceError, WrongUse
from erasable.models import Model
from erasable.store import files, layout
from erasable.store.checkpoints import DiskCheckpoints
from erasable.store.creation import clear, make_missing_folders, refuse_occupied, remove_folders
from erasable.store.folder import CheckedFolder, read_whole
from erasable.store.leftovers import sweep, sweep_as_reader, sweep_at_opening
from erasable.store.loading import IssuedFiles, StoredGroups, load_state
from erasable.store.locks import exclusive_reader_lock, shared_reader_lock, writer_lock
from erasable.store.manifest import Manifest, damaged, encode_manifest
from erasable.store.opening import existing_workspace, mark_of, read_manifest
from erasable.store.papers import NO_PAPERS, Papers, Stamp
from erasable.store.preferences import Preferences
from erasable.store.saving import Version, write_papers, write_version
from erasable.store.sealing import NamedFiles, SealedPapers
from erasable.training import State


class Workspace:
    """An open workspace; get one with `creating`, `writing` or `reading`, and use it inside the block."""

    def __init__(self, path: Path, manifest: Manifest | None, writable: bool, mode: int = files.OWNER_ONLY) -> None:
        self.path = path
        self._writable = writable
        self._folder = CheckedFolder(path, {}, mode)
        self._checkpoints = DiskCheckpoints(self._folder, writable)
        self._sealed = SealedPapers(self._folder)
        self._manifest: Manifest | None = None
        self._state: State | None = None
        self._fence: Callable[[], None] | None = None
        self._model: type[Model] | None = None
        self.leftovers: tuple[str, ...] = ()
        """Files that a killed command left, perhaps of someone erased, and that a reader here can't remove."""
        if manifest is not None:
            self._adopt(manifest)

    @classmethod
    @contextmanager
    def creating(cls, path: str | Path, readable_by_group: bool = False) -> Iterator["Workspace"]:
        """Make a new workspace; unless the block commits and ends well, everything made is removed again."""
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
        cls, path: str | Path, fence: Callable[[], None] | None = None, model: type[Model] | None = None
    ) -> Iterator["Workspace"]:
        """Be the only writer of a workspace; what is not committed when the block ends is swept away.

        A fence is called before each change of what is current, and raises if this writer may not write any more. A
        model that is not registered is handed over.
        """
        root = existing_workspace(path)
        with writer_lock(root):
            manifest = read_manifest(root)
            sweep_at_opening(root, NamedFiles.of(root, manifest))
            try:
                workspace = cls(root, manifest, writable=True)
                workspace._fence, workspace._model = fence, model
                yield workspace
            finally:
                # What can't be swept now is swept by the next writer; the first error is the one to tell.
                with suppress(ErasableError, OSError):
                    sweep_at_opening(root, NamedFiles.of(root, read_manifest(root)))

    @classmethod
    @contextmanager
    def reading(
        cls, path: str | Path, sweeping: bool = True, model: type[Model] | None = None
    ) -> Iterator["Workspace"]:
        """Read a workspace, rid of what a killed command left; a commit waits for the block to end: keep it short.

        Whoever looks for what was left opens it without sweeping. A model that is not registered is handed over.
        """
        root = existing_workspace(path)
        with shared_reader_lock(root):
            workspace = cls(root, read_manifest(root), writable=False)
            workspace._model = model
            if sweeping:
                workspace.leftovers = sweep_as_reader(root, NamedFiles.of(root, workspace.manifest))
            yield workspace

    @staticmethod
    def mark(path: str | Path) -> tuple[int, int, int]:
        """Return what changes whenever something else becomes current; quick enough to be asked for all the time."""
        return mark_of(existing_workspace(path))

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
    def format(self) -> int:
        """The number of the format that the manifest lies in."""
        return self.manifest.written_in

    @property
    def newer(self) -> bool:
        """Whether the manifest says something that this version does not know."""
        return says_more(self.manifest)

    @property
    def stamp(self) -> Stamp:
        """The number of the current version, 1 after learning, and its salt."""
        return Stamp(self.manifest.version, self.manifest.salt)

    @property
    def erasures(self) -> int:
        """How many erasures there were, one certificate for each."""
        if self._manifest is None:
            return 0
        not_sealed = sum(name.endswith(".json") for name in self._manifest.certificates)
        return not_sealed + sum(record.erasures for record in self._manifest.segments)

    def issued(self) -> Mapping[str, bytes]:
        """Return the certificates by file name, oldest first, each found unchanged when it is first looked at."""
        names = self._manifest.certificates if self._manifest else ()
        return IssuedFiles(names, lambda name: self._folder.read(layout.certificate_name(name)), self._sealed)

    def papers(self) -> Papers:
        """Return the papers that are kept, found unchanged, the certificates apart.

        The key and pending requests are for the owner of the workspace; whoever else reads it goes without them.
        """
        names = (self.manifest.audit, self.manifest.key, self.manifest.pending)
        audit, key, pending = map(self._paper, names)
        return Papers(
            *(audit, key, pending),
            key_withheld=self.manifest.key is not None and self._is_hidden(self.manifest.key),
            preferences=self.manifest.preferences,
            sealed_records=self._sealed.log,
        )

    @property
    def size(self) -> int:
        """How many bytes the files of the current version take, as far as they are there."""
        paths = [self.path / name for name in self.manifest.files]
        return sum(path.stat().st_size for path in paths if path.exists())

    def refuse_if_full(self, needed: int) -> None:
        """Refuse what would not fit on the disk, before any of it is written."""
        files.refuse_if_full(self.path, needed)

    @property
    def pending_files(self) -> tuple[str, ...]:
        """The file of the requests that are being carried out, if there are any."""
        return () if self.manifest.pending is None else (self.manifest.pending,)

    @property
    def sealed_files(self) -> frozenset[str]:
        """The files of finished papers, which were searched when they were sealed."""
        segments = {name for record in self.manifest.segments for name in (record.certificates, record.log)}
        requests = () if self.manifest.requests is None else (self.manifest.requests,)
        return frozenset({*segments, *requests, *map(layout.certificate_name, self._sealed.certificates)})

    def damaged(self) -> list[str]:
        """Return every file that is missing, or is not what the manifest says, as far as it may be read."""
        private = [name for name in (self.manifest.key, self.manifest.pending, self.manifest.requests) if name]
        # What a damaged segment lists is not known.
        return self._folder.damaged(private) or self._sealed.damaged()

    def unchecked_audit(self) -> bytes:
        """Return the audit chain as it lies there, to find where it was changed."""
        parts = [*(record.log for record in self.manifest.segments), self.manifest.audit]
        return b"".join(read_whole(self.path / name) for name in parts if name)

    def state(self) -> State:
        """Return the state; a group's data is read when it is first asked for, inside the block."""
        return self._state or self._held(load_state(self._folder, self.manifest, self._model))

    def commit(self, state: State, papers: Papers = NO_PAPERS, stamp: Stamp | None = None) -> None:
        """Make a state current and destroy every file of the version before that it does not share.

        Its checkpoints are in `checkpoints` already. Without a stamp the version gets the next number.
        """
        self._check_writable()
        stamp = stamp or Stamp.after(self._manifest.version if self._manifest else 0)
        self._make_current(write_version(state, papers, self._version(), stamp))

    def amend(self, papers: Papers) -> None:
        """Put other papers beside the same state; the version stays, and checkpoints not yet committed go."""
        self._check_writable()
        state = self._state
        # First, since what was not committed may be what fills the disk.
        self._adopt(self.manifest)
        sweep(self.path, NamedFiles.of(self.path, self.manifest))
        self._make_current(write_papers(papers, self.manifest, self._folder))
        if state is not None:
            self._held(state)

    def prefer(self, preferences: Preferences) -> None:
        """Remember something else from the next commit or amendment on; by itself it writes nothing."""
        self._manifest = self.manifest.model_copy(update={"preferences": preferences})

    def _held(self, state: State) -> State:
        """Keep the state of the current version, and know its checkpoints under the names of this release."""
        self._state = state
        self._checkpoints.hand_on(state.chain, state.recorded)
        return state

    def _paper(self, name: str | None) -> bytes:
        """Return a paper; one that is named and says nothing was emptied, whatever its hash is."""
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

    def _make_current(self, manifest: Manifest) -> None:
        new = self.path / layout.NEW_MANIFEST
        files.write_file(new, encode_manifest(manifest), self._folder.mode)
        with exclusive_reader_lock(self.path):
            if self._fence is not None:
                self._fence()
            try:
                files.replace_file(new, self.path / layout.MANIFEST)
            finally:
                # Whoever is stopped once it is in its place, and goes on, must not take the version before for current.
                if not new.exists():
                    self._adopt(manifest)
            sweep(self.path, NamedFiles.of(self.path, manifest))

    def _version(self) -> Version:
        groups = self._state.knowledge.groups if self._state else None
        handed_out = groups if isinstance(groups, StoredGroups) else None
        return Version(self._manifest, self._folder, self._checkpoints, handed_out)

    def _adopt(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._folder.adopt(manifest.files)
        self._folder.mode = files.OWNER_AND_GROUP if manifest.preferences.readable_by_group else files.OWNER_ONLY
        self._checkpoints.adopt(manifest.chain)
        self._sealed = SealedPapers(self._folder, manifest.segments)
        self._state = None
