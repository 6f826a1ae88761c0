"""Checkpoints as safetensors files: the disk's side of the `CheckpointStore` protocol."""

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from erasable.documents import read_json
from erasable.errors import WorkspaceDamaged, WorkspaceError, WrongUse
from erasable.fingerprint import canonical_json
from erasable.store.blocks import cut, is_same, joined, shapes
from erasable.store.folder import CheckedFolder
from erasable.store.layout import block_name, checkpoint_name
from erasable.store.manifest import RESTORE, LinkRecord, damaged
from erasable.training import Checkpoint, Link
from erasable.training.checkpoint import ARRAY_NAMES

_FACTS = {"fingerprint", "parent", "environment"}
_ITEMS = "items"
"""How many items there are, in the file of a checkpoint with blocks; in a block, from which item to which."""
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


_Said = TypeVar("_Said")
_IN_NO_BLOCK: Mapping[str, NDArray[Any]] = {}


@dataclass(frozen=True)
class _Kept:
    file: str
    parent: str
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Remembered:
    """The checkpoint that was read last: as long as nobody touches its files, it is what they hold."""

    checkpoint: Checkpoint
    kept: _Kept
    starts: tuple[int, ...]
    """The first item of each block."""


class DiskCheckpoints:
    """Keeps checkpoints by fingerprint; what the current version names stays until a commit replaces it.

    An erasure reads a checkpoint, and puts another that differs in a few blocks. So the last one that was read is
    remembered: it is read once, and blocks that it shares are neither written nor hashed. What was put is not: whoever
    certifies it reads what lies there.
    """

    _last: _Remembered | None = None

    def __init__(self, folder: CheckedFolder, writable: bool) -> None:
        self._folder = folder
        self._writable = writable
        self.adopt(())

    def adopt(self, chain: Sequence[LinkRecord]) -> None:
        """Keep the checkpoints of this chain only from now on."""
        self._current = {link.fingerprint: _Kept(link.file, link.parent, link.blocks) for link in chain}
        self._added: dict[str, _Kept] = {}

    def hand_on(self, chain: Sequence[Link], recorded: Sequence[Link]) -> None:
        """Know the checkpoints of the current chain under other names as well, each with the files that it has."""
        for link, earlier in zip(chain, recorded, strict=False):
            self._current[link.fingerprint] = replace(self._current[earlier.fingerprint], parent=link.parent)

    def get(self, fingerprint: str) -> Checkpoint:
        """Return a checkpoint that is kept, its bytes checked."""
        kept, last = self._kept(fingerprint), self._last
        if last is not None and (last.checkpoint.fingerprint, last.kept) == (fingerprint, kept) and self._is_as_read():
            return last.checkpoint
        if not kept.blocks:
            arrays, environment = self._read(kept.file, decode_environment, _FACTS)
            return self._remember(Checkpoint.from_arrays(fingerprint, kept.parent, arrays, environment), kept, ())
        arrays, (environment, items) = self._read(kept.file, _decode_whole, {*_FACTS, _ITEMS})
        by_item, (*starts, found) = self._joined(kept.blocks)
        if found != items or arrays.keys() & by_item.keys():
            raise self._fault(kept.file, f"it is of {items} items, and its blocks hold {found}")
        whole = Checkpoint.from_arrays(fingerprint, kept.parent, {**arrays, **by_item}, environment, by_item)
        return self._remember(whole, kept, starts)

    def put(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint; it is durable when this returns, and current after the next commit."""
        if not self._writable:
            raise WrongUse("the workspace is open for reading: open it with Workspace.writing to keep a checkpoint")
        by_item = checkpoint.arrays_by_item()
        # One after another, so that no second copy of all arrays is made.
        blocks = tuple(
            self._same_block(number, first, block)
            or self._folder.write_hashed(block_name(number), _encode_block(first, block))
            for number, (first, block) in enumerate(cut(by_item))
        )
        name = checkpoint_name(checkpoint.fingerprint)
        file = self._folder.write(name, encode_checkpoint(checkpoint, by_item))
        self._added[checkpoint.fingerprint] = _Kept(file, checkpoint.parent, blocks)

    def _same_block(self, number: int, first: int, block: Mapping[str, NDArray[Any]]) -> str | None:
        """Return the file of the block at a place of the last checkpoint, if it is whole and holds just this."""
        last = self._last
        if last is None or last.starts[number : number + 1] != (first,):
            return None
        file = last.kept.blocks[number]
        end = last.starts[number + 1] if number + 1 < len(last.starts) else None
        there = {name: array[first:end] for name, array in last.checkpoint.arrays_by_item().items()}
        return file if is_same(block, there) and self._folder.is_untouched(file) else None

    def _is_as_read(self) -> bool:
        """Whether nobody has touched the files of the last checkpoint."""
        return self._last is not None and all(
            self._folder.is_untouched(file) for file in (self._last.kept.file, *self._last.kept.blocks)
        )

    def _remember(self, checkpoint: Checkpoint, kept: _Kept, starts: Sequence[int]) -> Checkpoint:
        """Remember a checkpoint, whose arrays nobody can change, and return it."""
        self._last = _Remembered(checkpoint, kept, tuple(starts))
        return checkpoint

    def __contains__(self, fingerprint: str) -> bool:
        """Whether a checkpoint is kept."""
        return fingerprint in self._added or fingerprint in self._current

    def file_of(self, fingerprint: str) -> str:
        """Return the file that a checkpoint lies in, what lies in blocks apart."""
        return self._kept(fingerprint).file

    def blocks_of(self, fingerprint: str) -> tuple[str, ...]:
        """Return the files of a checkpoint's arrays by item, in the order of the items."""
        return self._kept(fingerprint).blocks

    def _joined(self, files: Sequence[str]) -> tuple[Mapping[str, NDArray[Any]], list[int]]:
        """Return the arrays that lie in blocks, and where blocks begin and end; each block must be in its place."""
        blocks, places = list[Mapping[str, NDArray[Any]]](), [0]
        for file in files:
            block, (first, end) = self._read(file, _decode_place, {_ITEMS})
            if first != places[-1]:
                raise self._fault(file, f"its items begin with number {first}, and number {places[-1]} comes next")
            if not block or shapes(block) != shapes(blocks[0] if blocks else block) or _lengths(block) != {end - first}:
                raise self._fault(file, "its arrays are not those of a block")
            blocks.append(block)
            places.append(end)
        return joined(blocks), places

    def _read(
        self, file: str, decode: Callable[[bytes], _Said], facts: AbstractSet[str]
    ) -> tuple[Mapping[str, NDArray[Any]], _Said]:
        """Return the arrays of a file and what it says of them; these facts, and nothing more, must stand there."""
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
    """Write a checkpoint as safetensors, without the arrays that lie in blocks.

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
    """Write a block; it says which items it is of and nothing of its checkpoint, so that several may share it."""
    return _encode(block, {_ITEMS: [first, first + max(_lengths(block))]})


def _encode(arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> bytes:
    in_order = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    # safetensors orders several metadata entries at random, so there is one.
    content: bytes = safetensors.numpy.save(in_order, metadata={"erasable": canonical_json(facts).decode()})
    return content


def _lengths(block: Mapping[str, NDArray[Any]]) -> set[int]:
    """Return how many rows the arrays of a block have; a single number has none."""
    return {array.shape[0] if array.shape else -1 for array in block.values()}


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
    environment = _facts(content)["environment"]
    if not all(isinstance(value, str) for value in environment.values()):
        raise ValueError("an environment is told in texts")
    return dict(environment)


def _decode_whole(content: bytes) -> tuple[dict[str, str], int]:
    """Return the environment of a checkpoint with blocks, and how many items its blocks hold."""
    items = _facts(content)[_ITEMS]
    if type(items) is not int:
        raise ValueError("items are counted")
    return decode_environment(content), items


def _decode_place(content: bytes) -> tuple[int, int]:
    """Return the number of a block's first item, and the one behind its last."""
    first, end = _facts(content)[_ITEMS]
    if type(first) is not int or type(end) is not int:
        raise ValueError("items are counted")
    return first, end


def _facts(content: bytes) -> dict[str, Any]:
    _, header = _header(content)
    facts: dict[str, Any] = read_json(header["__metadata__"]["erasable"].encode())
    return facts


def _holds_more(content: bytes, facts: AbstractSet[str]) -> bool:
    """Whether a file has arrays, metadata or bytes that no checkpoint has: a replay would not notice them."""
    start, header = _header(content)
    metadata = header.pop("__metadata__")
    ours = metadata.keys() == {"erasable"} and read_json(metadata["erasable"].encode()).keys() == facts
    named = all(name.startswith(ARRAY_NAMES) for name in header)
    taken = sum(end - begin for begin, end in (one["data_offsets"] for one in header.values()))
    return not (ours and named and start + taken == len(content))


def _header(content: bytes) -> tuple[int, dict[str, Any]]:
    """Return where the arrays of a safetensors file begin, and what is said of them."""
    start = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    return start, read_json(content[_LENGTH:start])
