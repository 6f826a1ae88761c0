"""Recommenders that seem to have been learned in another numeric environment."""

import os
import subprocess
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np

from erasable.chain import Checkpoint, State
from erasable.operations import MemoryStorage
from erasable.workspace import Workspace
from erasable.workspace.manifest import Manifest, decode_manifest, encode_manifest

OTHER_KERNEL = "Nehalem"
"""An OpenBLAS kernel that every x86-64 machine can run, and that rounds otherwise than those of newer ones."""


def moved(path: Path, places: Collection[int] | None = None, **changes: str) -> Manifest:
    """Rewrite a manifest as if its checkpoints, all or those at some places, had been made with other versions."""
    manifest = decode_manifest((path / "manifest.json").read_bytes(), "manifest.json")
    table = [*manifest.environments, *({**one, **changes} for one in manifest.environments)]
    chain = tuple(
        link.model_copy(update={"environment": link.environment + len(manifest.environments)})
        if places is None or place in places
        else link
        for place, link in enumerate(manifest.chain)
    )
    manifest = manifest.model_copy(update={"environments": tuple(table), "chain": chain}).sealed()
    (path / "manifest.json").write_bytes(encode_manifest(manifest))
    return manifest


def moved_in_memory(storage: MemoryStorage, **changes: str) -> None:
    """Let what is in memory seem to have been learned with other versions."""
    with storage.writing() as session:
        state = session.state()
        chain = tuple(replace(link, environment={**link.environment, **changes}) for link in state.chain)
        session.commit(State(state.dataset, chain), session.documents(), session.stamp)


def spoiled(path: Path, place: int) -> None:
    """Let the checkpoint at a place have other bytes, as another environment may have given them."""
    with Workspace.writing(path) as workspace:
        state, documents = workspace.state(), workspace.documents()
        found = workspace.checkpoints.get(state.chain[place].fingerprint)
        arrays = {name: np.nextafter(array, np.float32(9)) for name, array in found.arrays().items()}
        workspace.checkpoints.put(Checkpoint.from_arrays(found.fingerprint, found.parent, arrays, found.environment))
        workspace.commit(state, documents, workspace.stamp)


def run_with_other_kernel(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process whose OpenBLAS takes another kernel."""
    return subprocess.run(
        [sys.executable, "-m", "erasable", *map(str, words)],
        env={**os.environ, "OPENBLAS_CORETYPE": OTHER_KERNEL},
        capture_output=True,
        text=True,
        check=False,
    )
