"""The dictionary page of a Parquet column, read as it lies there: values that no row refers to are part of it.

Arrow hands these out for texts alone, so the page is read here: a header in Thrift's compact protocol, then the values
one after another.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from erasable.data.ids import ArrowColumn

_DICTIONARY_PAGE = 2
_TYPE, _PLAIN_SIZE, _PACKED_SIZE, _DICTIONARY_HEADER, _COUNT = 1, 2, 3, 7, 1
_NUMBERS = {"INT32": "<i4", "INT64": "<i8", "FLOAT": "<f4", "DOUBLE": "<f8"}
_CODECS = {"LZ4": "lz4_raw"}


def dictionary_values(content: bytes, chunk: Any, width: int) -> ArrowColumn:  # noqa: ANN401 - Arrow's own
    """Return the values in the dictionary of a column chunk, texts as bytes; none if it has no dictionary.

    `width` is that of values of fixed length. Whatever is not as it should be raises ValueError.
    """
    try:
        reader = _Reader(content, first_page(chunk))
        header = reader.struct()
        if header.get(_TYPE) != _DICTIONARY_PAGE:
            return pa.array([], pa.binary())
        page = content[reader.place : reader.place + header[_PACKED_SIZE]]
        if chunk.compression != "UNCOMPRESSED":
            codec = pa.Codec(_CODECS.get(chunk.compression, chunk.compression.lower()))
            page = codec.decompress(page, decompressed_size=header[_PLAIN_SIZE], asbytes=True)
        return _values(page, header[_DICTIONARY_HEADER][_COUNT], chunk.physical_type, width)
    except (IndexError, KeyError, TypeError, OSError, pa.ArrowException) as error:
        raise ValueError("the dictionary can't be read") from error


def first_page(chunk: Any) -> int:  # noqa: ANN401 - Arrow's own
    """Return where the pages of a column chunk begin."""
    return min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)), default=0)


def _values(page: bytes, count: int, kind: str, width: int) -> ArrowColumn:
    if kind in _NUMBERS:
        return pa.array(np.frombuffer(page, _NUMBERS[kind], count))
    if kind != "BYTE_ARRAY":
        return pa.array([page[place * width : (place + 1) * width] for place in range(count)], pa.binary())
    values, place = [], 0
    for _ in range(count):
        start = place + 4
        place = start + int.from_bytes(page[place:start], "little")
        values.append(page[start:place])
    return pa.array(values, pa.binary())


@dataclass
class _Reader:
    """Reads Thrift's compact protocol, as much of it as page headers use."""

    content: bytes
    place: int

    def struct(self) -> dict[int, Any]:
        """Return the fields of a struct by number."""
        fields: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            step = kind >> 4
            number = number + step if step else self._signed()
            fields[number] = self._value(kind & 15)
        return fields

    def _value(self, kind: int) -> Any:  # noqa: ANN401 - whatever the field holds
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind in (7, 8):
            return self._bytes(8 if kind == 7 else self._varint())
        if kind in (9, 10):
            return self._list()
        if kind == 12:
            return self.struct()
        raise ValueError("a field of unknown type")

    def _list(self) -> list[Any]:
        head = self._byte()
        size = self._varint() if head >> 4 == 15 else head >> 4
        return [self._value(head & 15) for _ in range(size)]

    def _bytes(self, size: int) -> bytes:
        self.place += size
        return self.content[self.place - size : self.place]

    def _byte(self) -> int:
        self.place += 1
        return self.content[self.place - 1]

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7

    def _signed(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)
