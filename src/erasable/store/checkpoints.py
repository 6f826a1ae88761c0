"""Checkpoints as safetensors files: the disk's side of the `CheckpointStore` protocol."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from erasable.errors import WorkspaceError, WrongUse
from erasable.fingerprint import canonical_json
from erasable.store.folder import CheckedFolder
from erasable.store.layout import checkpoint_name
from erasable.store.manifest import LinkRecord
from erasable.training import Checkpoint, Link

_LENGTH = 8  # bytes that say how long the header is
_KINDS = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8"}


@dataclass(frozen=True)
class _Kept:
    file: str
    parent: str


class DiskCheckpoints:
    """Keeps checkpoints by fingerprint; what the current version names stays until a commit replaces it."""

    def __init__(self, folder: CheckedFolder, writable: bool) -> None:
        self._folder = folder
        self._writable = writable
        self.adopt(())

    def adopt(self, chain: Sequence[LinkRecord]) -> None:
        """Keep the checkpoints of this chain only from now on."""
        self._current = {link.fingerprint: _Kept(link.file, link.parent) for link in chain}
        self._added: dict[str, _Kept] = {}

    def hand_on(self, chain: Sequence[Link], recorded: Sequence[Link]) -> None:
        """Know the checkpoints of the current chain under other names as well, each with the files that it has."""
        for link, earlier in zip(chain, recorded, strict=False):
            self._current[link.fingerprint] = _Kept(self._current[earlier.fingerprint].file, link.parent)

    def get(self, fingerprint: str) -> Checkpoint:
        """Return a checkpoint that is kept, its bytes checked."""
        kept = self._kept(fingerprint)
        content = self._folder.read(kept.file)
        return Checkpoint.from_arrays(fingerprint, kept.parent, decode_arrays(content), decode_environment(content))

    def put(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint; it is durable when this returns, and current after the next commit."""
        if not self._writable:
            raise WrongUse("the workspace is open for reading: open it with Workspace.writing to keep a checkpoint")
        name = checkpoint_name(checkpoint.fingerprint)
        file = self._folder.write(name, encode_checkpoint(checkpoint))
        self._added[checkpoint.fingerprint] = _Kept(file, checkpoint.parent)

    def __contains__(self, fingerprint: str) -> bool:
        """Whether a checkpoint is kept."""
        return fingerprint in self._added or fingerprint in self._current

    def file_of(self, fingerprint: str) -> str:
        """Return the file that a checkpoint lies in."""
        return self._kept(fingerprint).file

    def _kept(self, fingerprint: str) -> _Kept:
        kept = self._added.get(fingerprint) or self._current.get(fingerprint)
        if kept is None:
            raise WorkspaceError(
                f"{self._folder.root} holds no checkpoint {fingerprint}: put it there first, or learn again"
            )
        return kept


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Write a checkpoint as safetensors; equal checkpoints of one environment give equal bytes."""
    facts = {
        "fingerprint": checkpoint.fingerprint,
        "parent": checkpoint.parent,
        "environment": dict(checkpoint.environment),
    }
    arrays = {name: np.ascontiguousarray(array) for name, array in checkpoint.arrays().items()}
    # safetensors orders several metadata entries at random, so there is one.
    content: bytes = safetensors.numpy.save(arrays, metadata={"erasable": canonical_json(facts).decode()})
    return content


def decode_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of a safetensors file as views of its bytes.

    The library would copy them, and meanwhile no other thread of Python would run: 70 ms for EASE on MovieLens 1M.
    """
    start, header = _header(content)
    header.pop("__metadata__", None)
    return {
        name: np.ndarray(facts["shape"], _KINDS[facts["dtype"]], content, start + facts["data_offsets"][0])
        for name, facts in header.items()
    }


def decode_environment(content: bytes) -> dict[str, str]:
    """Return the numeric environment that a safetensors file of ours says it was made in."""
    _, header = _header(content)
    environment: dict[str, str] = json.loads(header["__metadata__"]["erasable"])["environment"]
    return environment


def _header(content: bytes) -> tuple[int, dict[str, Any]]:
    """Return where the arrays of a safetensors file begin, and what is said of them."""
    start = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    return start, json.loads(content[_LENGTH:start])
