"""The workspace: a folder with the data, checkpoints, documents and certificates of one recommender."""

from erasable.workspace.checkpoints import DiskCheckpoints
from erasable.workspace.manifest import (
    FORMAT,
    NO_DOCUMENTS,
    NO_PREFERENCES,
    CatalogueRecord,
    Documents,
    GroupRecord,
    HoldoutRecord,
    LinkRecord,
    Manifest,
    Preferences,
    ScaleRecord,
    Stamp,
)
from erasable.workspace.workspace import Workspace

__all__ = [
    "FORMAT",
    "NO_DOCUMENTS",
    "NO_PREFERENCES",
    "CatalogueRecord",
    "DiskCheckpoints",
    "Documents",
    "GroupRecord",
    "HoldoutRecord",
    "LinkRecord",
    "Manifest",
    "Preferences",
    "ScaleRecord",
    "Stamp",
    "Workspace",
]
