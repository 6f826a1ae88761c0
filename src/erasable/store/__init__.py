"""What survives a restart: the workspace folder, with its data, checkpoints and certificates."""

from erasable.store.checkpoints import DiskCheckpoints
from erasable.store.manifest import (
    FORMAT,
    CatalogueRecord,
    GroupRecord,
    HoldoutRecord,
    LinkRecord,
    Manifest,
    ScaleRecord,
)
from erasable.store.papers import NO_PAPERS, Papers, Stamp
from erasable.store.preferences import NO_PREFERENCES, Preferences
from erasable.store.workspace import Workspace

__all__ = [
    "FORMAT",
    "NO_PAPERS",
    "NO_PREFERENCES",
    "CatalogueRecord",
    "DiskCheckpoints",
    "GroupRecord",
    "HoldoutRecord",
    "LinkRecord",
    "Manifest",
    "Papers",
    "Preferences",
    "ScaleRecord",
    "Stamp",
    "Workspace",
]
