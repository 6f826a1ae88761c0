"""One bit of a document, flipped and put back; and whether it is noticed before anything is loaded."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from erasable import fingerprint
from erasable.errors import Refused, WorkspaceError
from erasable.operations import DiskStorage
from erasable.operations.verify import integrity_fault
from erasable.proof import read_certificate, read_receipt
from erasable.proof.do_not_learn import DoNotLearnFiles, DoNotLearnList
from erasable.workspace.files import QUEUE_FILES


class Watched(NamedTuple):
    """A file, what kind of document it is, and whether a change in it is noticed."""

    path: Path
    kind: str
    notices: Callable[[], bool]
    told: bytes = b""
    """What it tells people, which nothing depends on and nothing covers."""


def files_of(folder: Path) -> list[Path]:
    """Return the files of a workspace that hold something: not its locks, nor its queue, which nothing seals."""
    queue = {folder / name for name in QUEUE_FILES}
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size and path not in queue)


def watched_workspace(folder: Path, certificate: Path | None = None, release: str = "") -> list[Watched]:
    """Return the files of a workspace, which what comes first in `verify` looks at."""
    return [
        Watched(path, release + _kind(path.relative_to(folder)), lambda: notices(folder, certificate))
        for path in files_of(folder)
    ]


def watched_proof(folder: Path, certificate: Path, receipt: Path, release: str = "") -> list[Watched]:
    """Return a certificate and a receipt as they were handed out."""
    about = json.loads(receipt.read_bytes())["about"].encode()
    return [
        Watched(certificate, f"{release}certificate outside", lambda: notices(folder, certificate)),
        Watched(receipt, f"{release}receipt", lambda: not _is_plain(receipt, certificate), about),
    ]


def watched_list(places: DoNotLearnFiles, release: str = "") -> list[Watched]:
    """Return a do-not-learn list and its key."""
    kinds = {places.list: "do-not-learn list", places.key: "key of the do-not-learn list"}
    return [Watched(path, release + kind, lambda: not _is_usable(places)) for path, kind in kinds.items()]


@contextmanager
def flipped(path: Path, chance: random.Random, told: bytes = b"") -> Iterator[None]:
    """Flip one bit of a file while the block runs, outside of what it only tells people."""
    content = path.read_bytes()
    changed = bytearray(content)
    start = content.index(told)
    place = chance.randrange(len(content) - len(told))
    changed[place if place < start else place + len(told)] ^= 1 << chance.randrange(8)
    path.write_bytes(changed)
    try:
        yield
    finally:
        path.write_bytes(content)


def seal_again(folder: Path, **changes: object) -> None:
    """Change what a manifest says, and seal it and its files like someone who knows how."""
    fields = json.loads((folder / "manifest.json").read_bytes()) | changes
    present = {name: folder / name for name in fields["files"] if (folder / name).exists()}
    fields["files"] |= {name: fingerprint.of_bytes(path.read_bytes()) for name, path in present.items()}
    fields["fingerprint"] = fields.pop("fingerprint") and ""  # it stands last
    content = (json.dumps(fields, indent=2, ensure_ascii=False) + "\n").encode()
    seal = f'"fingerprint": "{fingerprint.of_bytes(content)}"\n}}\n'.encode()
    (folder / "manifest.json").write_bytes(content.removesuffix(b'"fingerprint": ""\n}\n') + seal)


def notices(folder: Path, certificate: Path | None) -> bool:
    """Whether the checks that come before any loading find a fault."""
    try:
        with DiskStorage(folder).reading() as session:
            given = read_certificate(certificate.read_bytes()) if certificate else None
            return integrity_fault(session, given) is not None
    except (WorkspaceError, Refused):
        return True


def _is_plain(receipt: Path, certificate: Path) -> bool:
    """Whether a receipt belongs to a certificate, and has no field that is not known here, which `verify` tells."""
    try:
        found = read_receipt(receipt.read_bytes())
        return found.opens(read_certificate(certificate.read_bytes())) and not found.newer
    except Refused:
        return False


def _is_usable(places: DoNotLearnFiles) -> bool:
    try:
        DoNotLearnList.open(places)
    except Refused:
        return False
    return True


def _kind(path: Path) -> str:
    return f"{path.parts[0]}/*{path.suffix}" if len(path.parts) > 1 else f"{path.stem.split('-')[0]}{path.suffix}"
