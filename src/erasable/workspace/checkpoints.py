"""Checkpoints on disk: safetensors files, with arrays by item in blocks that checkpoints share."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from erasable.chain.checkpoints import (
    ARRAY_NAMES,
    Checkpoint,
    Link,
)
from erasable.documents import read_json
from erasable.errors import WorkspaceDamaged, WorkspaceError, WrongUse
from erasable.fingerprint import canonical_json
from erasable.workspace.files import block_name, checkpoint_name
from erasable.workspace.folder import CheckedFolder
from erasable.workspace.manifest import RESTORE, LinkRecord, damaged

BLOCK_BYTES = 2**20
"""The approximate size of a block; blocks of any size can be read, so this may change at any time."""

Arrays = Mapping[str, NDArray[Any]]


def cut(arrays: Arrays) -> Iterator[tuple[int, Arrays]]:
    """Yield the first item and the rows of each block, in item order; without items there is one empty block."""
    counts = {len(array) for array in arrays.values()}
    if len(counts) > 1:
        raise WrongUse(f"arrays with {sorted(counts)} rows: an array in blocks has a row for each item")
    size = max(1, BLOCK_BYTES // max(1, sum(map(_row_bytes, arrays.values()))))
    for first in range(0, max(1, *counts) if counts else 0, size):
        yield first, {name: array[first : first + size] for name, array in arrays.items()}


def joined(blocks: Sequence[Arrays]) -> Arrays:
    """Join blocks to whole arrays; a single block is not copied."""
    if len(blocks) == 1:
        return blocks[0]
    return {name: np.concatenate([block[name] for block in blocks]) for name in (blocks[0] if blocks else ())}


def is_same(block: Arrays, other: Arrays) -> bool:
    """Whether two blocks are equal, byte for byte."""
    if shapes(block) != shapes(other):
        return False
    return all(np.array_equal(_bytes_of(array), _bytes_of(other[name])) for name, array in block.items())


def shapes(block: Arrays) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the type and shape of a row in each array, equal in all blocks of a checkpoint."""
    return {name: (array.dtype.str, array.shape[1:]) for name, array in block.items()}


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return an array's bytes; compared as numbers, 0.0 and -0.0 would be equal."""
    return np.frombuffer(np.ascontiguousarray(array).data, np.uint8) if array.size else np.empty(0, np.uint8)


def _row_bytes(array: NDArray[Any]) -> int:
    return array.itemsize * math.prod(array.shape[1:])


_FACTS = {"fingerprint", "parent", "environment"}
_ITEMS = "items"
"""In a checkpoint with blocks, the number of items; in a block, its first item and the one after its last."""
_LENGTH = 8  # bytes that hold the length of the header
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


_Said = TypeVar("_Said")
_IN_NO_BLOCK: Mapping[str, NDArray[Any]] = {}


@dataclass(frozen=True)
class _Kept:
    file: str
    parent: str
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Remembered:
    """The checkpoint that was read last; valid as long as its files are unchanged."""

    checkpoint: Checkpoint
    kept: _Kept
    starts: tuple[int, ...]
    """The first item of each block."""


class DiskCheckpoints:
    """Checkpoints by fingerprint; those of the current version stay until a commit replaces them.

    An erasure reads a checkpoint and writes another that differs in a few blocks. So the checkpoint read last is
    cached: it is read once, and blocks shared with it are neither written nor hashed. A checkpoint just written is not
    cached, because the certificate must rest on what is on disk.
    """

    _last: _Remembered | None = None

    def __init__(self, folder: CheckedFolder, writable: bool) -> None:
        self._folder = folder
        self._writable = writable
        self.adopt(())

    def adopt(self, chain: Sequence[LinkRecord]) -> None:
        """Keep only the checkpoints of this chain from now on."""
        self._current = {link.fingerprint: _Kept(link.file, link.parent, link.blocks) for link in chain}
        self._added: dict[str, _Kept] = {}

    def hand_on(self, chain: Sequence[Link], recorded: Sequence[Link]) -> None:
        """Register the files of the current chain under today's names too, if an earlier version named them."""
        for link, earlier in zip(chain, recorded, strict=False):
            self._current[link.fingerprint] = replace(self._current[earlier.fingerprint], parent=link.parent)

    def get(self, fingerprint: str) -> Checkpoint:
        """Read a checkpoint and check its bytes."""
        kept, last = self._kept(fingerprint), self._last
        if last is not None and (last.checkpoint.fingerprint, last.kept) == (fingerprint, kept) and self._is_as_read():
            return last.checkpoint
        if not kept.blocks:
            arrays, environment = self._read(kept.file, decode_environment, _FACTS)
            return self._remember(Checkpoint.from_arrays(fingerprint, kept.parent, arrays, environment), kept, ())
        arrays, (environment, items) = self._read(kept.file, _decode_whole, {*_FACTS, _ITEMS})
        by_item, (*starts, found) = self._joined(kept.blocks)
        if found != items or arrays.keys() & by_item.keys():
            raise self._fault(kept.file, f"it has {items} items, and its blocks hold {found}")
        whole = Checkpoint.from_arrays(fingerprint, kept.parent, {**arrays, **by_item}, environment, by_item)
        return self._remember(whole, kept, starts)

    def put(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint: durable when this returns, current after the next commit."""
        if not self._writable:
            raise WrongUse("the workspace is open for reading: open it with Workspace.writing to keep a checkpoint")
        by_item = checkpoint.arrays_by_item()
        # One block at a time, so that the arrays are never all copied at once.
        blocks = tuple(
            self._same_block(number, first, block)
            or self._folder.write_hashed(block_name(number), _encode_block(first, block))
            for number, (first, block) in enumerate(cut(by_item))
        )
        name = checkpoint_name(checkpoint.fingerprint)
        file = self._folder.write(name, encode_checkpoint(checkpoint, by_item))
        self._added[checkpoint.fingerprint] = _Kept(file, checkpoint.parent, blocks)

    def _same_block(self, number: int, first: int, block: Mapping[str, NDArray[Any]]) -> str | None:
        """Return the file of this block in the cached checkpoint, if the two are equal and the file is unchanged."""
        last = self._last
        if last is None or last.starts[number : number + 1] != (first,):
            return None
        file = last.kept.blocks[number]
        end = last.starts[number + 1] if number + 1 < len(last.starts) else None
        there = {name: array[first:end] for name, array in last.checkpoint.arrays_by_item().items()}
        return file if is_same(block, there) and self._folder.is_untouched(file) else None

    def _is_as_read(self) -> bool:
        """Whether the files of the cached checkpoint are unchanged."""
        return self._last is not None and all(
            self._folder.is_untouched(file) for file in (self._last.kept.file, *self._last.kept.blocks)
        )

    def _remember(self, checkpoint: Checkpoint, kept: _Kept, starts: Sequence[int]) -> Checkpoint:
        """Cache a checkpoint, whose arrays are read-only, and return it."""
        self._last = _Remembered(checkpoint, kept, tuple(starts))
        return checkpoint

    def __contains__(self, fingerprint: str) -> bool:
        """Whether there is such a checkpoint."""
        return fingerprint in self._added or fingerprint in self._current

    def file_of(self, fingerprint: str) -> str:
        """Return the file of a checkpoint, without its blocks."""
        return self._kept(fingerprint).file

    def blocks_of(self, fingerprint: str) -> tuple[str, ...]:
        """Return the files of a checkpoint's blocks, in item order."""
        return self._kept(fingerprint).blocks

    def _joined(self, files: Sequence[str]) -> tuple[Mapping[str, NDArray[Any]], list[int]]:
        """Read blocks and return the whole arrays and the bounds of the blocks; each block must fit the one before."""
        blocks, places = list[Mapping[str, NDArray[Any]]](), [0]
        for file in files:
            block, (first, end) = self._read(file, _decode_place, {_ITEMS})
            if first != places[-1]:
                raise self._fault(file, f"its items start at number {first} instead of {places[-1]}")
            if not block or shapes(block) != shapes(blocks[0] if blocks else block) or _lengths(block) != {end - first}:
                raise self._fault(file, "its arrays are not those of a block")
            blocks.append(block)
            places.append(end)
        return joined(blocks), places

    def _read(
        self, file: str, decode: Callable[[bytes], _Said], facts: AbstractSet[str]
    ) -> tuple[Mapping[str, NDArray[Any]], _Said]:
        """Return the arrays and the decoded metadata of a file, which must have exactly these facts."""
        content = self._folder.read(file)
        try:
            more = _holds_more(content, facts)
            arrays, said = decode_arrays(content), decode(content)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise damaged(self._folder.root / file) from error
        if more:
            raise self._fault(file, "it holds more than a checkpoint")
        return arrays, said

    def _fault(self, file: str, what: str) -> WorkspaceDamaged:
        return WorkspaceDamaged(f"{self._folder.root / file} is damaged ({what}): {RESTORE}")

    def _kept(self, fingerprint: str) -> _Kept:
        kept = self._added.get(fingerprint) or self._current.get(fingerprint)
        if kept is None:
            raise WorkspaceError(
                f"{self._folder.root} holds no checkpoint {fingerprint}: put it there first, or learn again"
            )
        return kept


def encode_checkpoint(checkpoint: Checkpoint, by_item: Mapping[str, NDArray[Any]] = _IN_NO_BLOCK) -> bytes:
    """Write a checkpoint as safetensors, without the arrays stored in blocks.

    Equal checkpoints of one environment give equal bytes.
    """
    facts: dict[str, Any] = {
        "fingerprint": checkpoint.fingerprint,
        "parent": checkpoint.parent,
        "environment": dict(checkpoint.environment),
    }
    if by_item:
        facts[_ITEMS] = len(next(iter(by_item.values())))
    return _encode({name: array for name, array in checkpoint.arrays().items() if name not in by_item}, facts)


def _encode_block(first: int, block: Mapping[str, NDArray[Any]]) -> bytes:
    """Write a block; it names its items but not its checkpoint, so that several checkpoints may share it."""
    return _encode(block, {_ITEMS: [first, first + max(_lengths(block))]})


def _encode(arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> bytes:
    in_order = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    # safetensors writes metadata entries in random order, so there is only one.
    content: bytes = safetensors.numpy.save(in_order, metadata={"erasable": canonical_json(facts).decode()})
    return content


def _lengths(block: Mapping[str, NDArray[Any]]) -> set[int]:
    """Return the numbers of rows in the arrays of a block; -1 stands for a scalar."""
    return {array.shape[0] if array.shape else -1 for array in block.values()}


def decode_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of a safetensors file as views of its bytes.

    The safetensors library would copy them and hold the GIL meanwhile: 70 ms for EASE on MovieLens 1M.
    """
    start, header = _header(content)
    header.pop("__metadata__", None)
    found, end = dict[str, NDArray[Any]](), start
    # As the format demands: arrays follow one another, with nothing between or after them.
    for name, facts in sorted(header.items(), key=lambda one: one[1]["data_offsets"]):
        kind, (begins, ends) = np.dtype(_KINDS[facts["dtype"]]), facts["data_offsets"]
        if begins + start != end or ends - begins != kind.itemsize * math.prod(facts["shape"]):
            raise ValueError("an array does not start where the one before ends, or has another size")
        found[name] = np.ndarray(facts["shape"], kind, content, end)
        end = start + ends
    if end != len(content):
        raise ValueError("there are bytes after the arrays")
    return found


def decode_environment(content: bytes) -> dict[str, str]:
    """Return the numeric environment recorded in a checkpoint file."""
    environment = _facts(content)["environment"]
    if not all(isinstance(value, str) for value in environment.values()):
        raise ValueError("an environment has text values only")
    return dict(environment)


def _decode_whole(content: bytes) -> tuple[dict[str, str], int]:
    """Return the environment of a checkpoint with blocks, and its number of items."""
    items = _facts(content)[_ITEMS]
    if type(items) is not int:
        raise ValueError("items are counted")
    return decode_environment(content), items


def _decode_place(content: bytes) -> tuple[int, int]:
    """Return the number of a block's first item, and the one after its last."""
    first, end = _facts(content)[_ITEMS]
    if type(first) is not int or type(end) is not int:
        raise ValueError("items are counted")
    return first, end


def _facts(content: bytes) -> dict[str, Any]:
    _, header = _header(content)
    facts: dict[str, Any] = read_json(header["__metadata__"]["erasable"].encode())
    return facts


def _holds_more(content: bytes, facts: AbstractSet[str]) -> bool:
    """Whether a file has arrays, metadata or bytes that no checkpoint has; a replay would not notice them."""
    start, header = _header(content)
    metadata = header.pop("__metadata__")
    ours = metadata.keys() == {"erasable"} and read_json(metadata["erasable"].encode()).keys() == facts
    named = all(name.startswith(ARRAY_NAMES) for name in header)
    taken = sum(end - begin for begin, end in (one["data_offsets"] for one in header.values()))
    return not (ours and named and start + taken == len(content))


def _header(content: bytes) -> tuple[int, dict[str, Any]]:
    """Return where the arrays of a safetensors file start, and its header."""
    start = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    return start, read_json(content[_LENGTH:start])
