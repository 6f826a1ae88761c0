"""What survives a restart: the workspace folder, with its data, checkpoints and certificates."""

from erasable.store.checkpoints import DiskCheckpoints
from erasable.store.manifest import (
    CatalogueRecord,
    GroupRecord,
    HoldoutRecord,
    LinkRecord,
    Manifest,
    ScaleRecord,
)
from erasable.store.papers import NO_PAPERS, Papers, Stamp
from erasable.store.workspace import Workspace

__all__ = [
    "NO_PAPERS",
    "CatalogueRecord",
    "DiskCheckpoints",
    "GroupRecord",
    "HoldoutRecord",
    "LinkRecord",
    "Manifest",
    "Papers",
    "ScaleRecord",
    "Stamp",
    "Workspace",
]
