"""A workspace whose manifest was changed and sealed again, as someone does who knows how."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from erasable import fingerprint


def with_fields(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the fields of a manifest, of this version or of 0.1, and seal it again."""
    place = folder / "manifest.json"
    fields = json.loads(place.read_bytes())
    change(fields)
    place.write_bytes(sealed(fields))


def with_file(folder: Path, name: str, content: bytes) -> None:
    """Put other content into a file that the manifest names, with its hash."""
    (folder / name).write_bytes(content)
    with_fields(folder, lambda fields: fields["files"].update({name: fingerprint.of_bytes(content)}))


def sealed(fields: dict[str, Any]) -> bytes:
    """Write a manifest; only its bytes are sealed, or, in 0.1's format, what it says."""
    said = {name: value for name, value in fields.items() if name != "fingerprint"}
    if said.get("format") == 3:
        return _written({**said, "fingerprint": fingerprint.of_value(said)})
    empty = _written({**said, "fingerprint": ""})
    return _written({**said, "fingerprint": fingerprint.of_bytes(empty)})


def _written(fields: dict[str, Any]) -> bytes:
    return (json.dumps(fields, indent=2, ensure_ascii=False) + "\n").encode()
