"""Documents of released versions, copied from the fixtures, for tests that change them."""

import json
import shutil
from pathlib import Path

from erasable.proof.do_not_learn import Suppression
from kit.tampering import Watched, notices, watched_list, watched_proof, watched_workspace

WORKSPACES = Path(__file__).parents[1] / "fixtures" / "workspaces"


def watched_documents(into: Path) -> list[Watched]:
    """Return every document of every released workspace, but those in a live queue, which nothing seals."""
    found: list[Watched] = []
    for about in sorted(WORKSPACES.glob("*/*/about.json")):
        version, name = about.parent.relative_to(WORKSPACES).parts
        if (about.parent / "workspace" / "ledger.sqlite").exists():
            continue
        folder = Path(shutil.copytree(about.parent, into / version / name))
        found += _documents(folder, json.loads(about.read_bytes()).get("erased", []), f"{version}: ")
    return found


def _documents(folder: Path, erased: list[dict[str, str]], release: str) -> list[Watched]:
    workspace = folder / "workspace"
    assert not notices(workspace, None)  # and whatever a killed command left is swept away
    found = watched_workspace(workspace, release=release)
    for one in erased:
        outside = Path(shutil.copy(folder / one["certificate"], folder / f"{Path(one['certificate']).stem}.json"))
        found += watched_proof(workspace, outside, folder / one["receipt"], release)
    if (folder / "lists").exists():
        found += watched_list(Suppression(folder / "lists" / "erased.json", folder / "keys" / "erased.key"), release)
    return found
