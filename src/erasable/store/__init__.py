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
from erasable.store.workspace import Workspace

__all__ = [
    "CatalogueRecord",
    "DiskCheckpoints",
    "GroupRecord",
    "HoldoutRecord",
    "LinkRecord",
    "Manifest",
    "ScaleRecord",
    "Workspace",
]
