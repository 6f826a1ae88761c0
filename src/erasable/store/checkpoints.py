"""Checkpoints as safetensors files: the disk's side of the `CheckpointStore` protocol."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from erasable.documents import read_json
from erasable.errors import WorkspaceDamaged, WorkspaceError, WrongUse
from erasable.fingerprint import canonical_json
from erasable.store.folder import CheckedFolder
from erasable.store.layout import checkpoint_name
from erasable.store.manifest import RESTORE, LinkRecord, damaged
from erasable.training import Checkpoint, Link
from erasable.training.checkpoint import ARRAY_NAMES

_FACTS = {"fingerprint", "parent", "environment"}
_LENGTH = 8  # bytes that say how long the header is
_KINDS = {
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "BOOL": "|b1",
    "I8": "|i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
    "U8": "|u1",
    "U16": "<u2",
    "U32": "<u4",
    "U64": "<u8",
}


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
        try:
            more = _holds_more(content)
            arrays, environment = decode_arrays(content), decode_environment(content)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise damaged(self._folder.root / kept.file) from error
        if more:
            raise WorkspaceDamaged(
                f"{self._folder.root / kept.file} is damaged (it holds more than a checkpoint): {RESTORE}"
            )
        return Checkpoint.from_arrays(fingerprint, kept.parent, arrays, environment)

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
    arrays = {name: np.asarray(array, order="C") for name, array in checkpoint.arrays().items()}
    # safetensors orders several metadata entries at random, so there is one.
    content: bytes = safetensors.numpy.save(arrays, metadata={"erasable": canonical_json(facts).decode()})
    return content


def decode_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of a safetensors file as views of its bytes.

    The library would copy them, and meanwhile no other thread of Python would run: 70 ms for EASE on MovieLens 1M.
    """
    start, header = _header(content)
    header.pop("__metadata__", None)
    found, end = dict[str, NDArray[Any]](), start
    # As the format wants it: one array after another, and nothing between them or after them.
    for name, facts in sorted(header.items(), key=lambda one: one[1]["data_offsets"]):
        kind, (begins, ends) = np.dtype(_KINDS[facts["dtype"]]), facts["data_offsets"]
        if begins + start != end or ends - begins != kind.itemsize * math.prod(facts["shape"]):
            raise ValueError("an array does not begin where the one before ends, or has another size")
        found[name] = np.ndarray(facts["shape"], kind, content, end)
        end = start + ends
    if end != len(content):
        raise ValueError("something lies behind the arrays")
    return found


def decode_environment(content: bytes) -> dict[str, str]:
    """Return the numeric environment that a safetensors file of ours says it was made in."""
    _, header = _header(content)
    environment = read_json(header["__metadata__"]["erasable"].encode())["environment"]
    if not all(isinstance(value, str) for value in environment.values()):
        raise ValueError("an environment is told in texts")
    return dict(environment)


def _holds_more(content: bytes) -> bool:
    """Whether a file has arrays, metadata or bytes that no checkpoint has: a replay would not notice them."""
    start, header = _header(content)
    metadata = header.pop("__metadata__")
    ours = metadata.keys() == {"erasable"} and read_json(metadata["erasable"].encode()).keys() == _FACTS
    named = all(name.startswith(ARRAY_NAMES) for name in header)
    taken = sum(end - begin for begin, end in (facts["data_offsets"] for facts in header.values()))
    return not (ours and named and start + taken == len(content))


def _header(content: bytes) -> tuple[int, dict[str, Any]]:
    """Return where the arrays of a safetensors file begin, and what is said of them."""
    start = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    return start, read_json(content[_LENGTH:start])
