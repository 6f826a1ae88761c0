"""Fingerprints: 32-byte digests in hexadecimal; equal values have equal fingerprints on every machine."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGEST_BYTES = 32


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - anything that JSON can say
    """Return canonical JSON: sorted keys, no spaces, UTF-8, no NaN.

    >>> canonical_json({"b": 1, "a": [True, None]})
    b'{"a":[true,null],"b":1}'
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def of_bytes(content: bytes) -> str:
    """Return the fingerprint of bytes."""
    return blake2b(content, digest_size=DIGEST_BYTES).hexdigest()


def of_value(value: Any) -> str:  # noqa: ANN401 - anything that JSON can say
    """Return the fingerprint of a JSON value."""
    return of_bytes(canonical_json(value))


def of_arrays(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the fingerprint of named arrays: names, types, shapes and bytes."""
    hasher = blake2b(digest_size=DIGEST_BYTES)
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        hasher.update(canonical_json([name, array.dtype.str, list(array.shape)]))
        hasher.update(array.data)
    return hasher.hexdigest()
