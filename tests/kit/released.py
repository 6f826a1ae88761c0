"""Documents of released versions, copied from the fixtures, for tests that change them."""

import json
import shutil
from pathlib import Path

from erasable.operations.do_not_learn import default_places
from erasable.proof.do_not_learn import DoNotLearnFiles
from kit.tampering import Watched, notices, watched_list, watched_proof, watched_workspace

WORKSPACES = Path(__file__).parents[1] / "fixtures" / "workspaces"


VERSIONS = sorted(path.name for path in WORKSPACES.iterdir() if path.is_dir())


def watched_documents(into: Path, *versions: str) -> list[Watched]:
    """Return every document of the workspaces of some versions, of all if none is named.

    What lies in a queue is left out, since nothing seals it, and so is what somebody else put into a workspace.
    """
    found: list[Watched] = []
    for about in sorted(WORKSPACES.glob("*/*/about.json")):
        version, name = about.parent.relative_to(WORKSPACES).parts
        if versions and version not in versions:
            continue
        folder = Path(shutil.copytree(about.parent, into / version / name))
        found += _documents(folder, json.loads(about.read_bytes()).get("erased", []), f"{version}: ")
    return found


def _documents(folder: Path, erased: list[dict[str, str]], release: str) -> list[Watched]:
    workspace = folder / "workspace"
    (workspace / "notes.txt").unlink(missing_ok=True)
    assert not notices(workspace, None)  # and whatever a killed command left is swept away
    found = watched_workspace(workspace, release=release)
    for one in erased:
        outside = Path(shutil.copy(folder / one["certificate"], folder / f"{Path(one['certificate']).stem}.json"))
        found += watched_proof(workspace, outside, folder / one["receipt"], release)
    named = DoNotLearnFiles(folder / "lists" / "erased.json", folder / "keys" / "erased.key")
    for places in (named, default_places(workspace)):
        found += watched_list(places, release) if places.list.exists() else []
    return found
