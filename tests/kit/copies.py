"""Copies of a workspace: with it go the folders of its do-not-learn list and key, which lie beside it."""

import json
import shutil
from pathlib import Path


def copy_of(source: Path, target: Path) -> Path:
    """Copy a workspace, and what it remembers to lie beside it unless that is there already."""
    shutil.copytree(source, target)
    for folder in folders_beside(source):
        if not target.with_name(folder.name).exists():
            shutil.copytree(folder, target.with_name(folder.name))
    return target


def folders_beside(workspace: Path) -> list[Path]:
    """Return the folders of the do-not-learn list and of its key that lie beside a workspace."""
    remembered = json.loads((workspace / "manifest.json").read_bytes()).get("preferences", {}).get("do_not_learn") or ()
    folders = [workspace.with_name(Path(place).parent.name) for place in remembered if place.startswith("..")]
    return [folder for folder in folders if folder.exists()]
