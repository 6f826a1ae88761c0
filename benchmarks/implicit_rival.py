"""Trains implicit (Ben Frederickson's library) in a venv of its own; `implicit_training.py` is the side in there."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.data import Interactions
from erasable.models import Arrays

IMPLICIT = "0.7.3"
IMPLICIT_VENV = Path(__file__).parent / ".venv-implicit"


class Trained(NamedTuple):
    """Factors of users and items, and the seconds of the clock and of the processor that they took."""

    factors: Arrays
    seconds: float
    cpu_seconds: float


def train_implicit(rows: Interactions, confidences: NDArray[np.float32], settings: dict[str, Any]) -> Trained:
    """Train on confidences, one for each row; the settings are options of `implicit_training.py`."""
    shape = (len(rows.users), len(rows.items))
    # Its threads would otherwise burn time while they wait for each other, which shows beside a busy process.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "PYTHONPATH": ""}
    with tempfile.TemporaryDirectory() as folder:
        data, factors = Path(folder) / "data.npz", Path(folder) / "factors.npz"
        np.savez(data, values=confidences, items=rows.item_index, starts=rows.user_starts, shape=shape)
        command = [str(_python()), str(Path(__file__).with_name("implicit_training.py"))]
        command += ["--data", str(data), "--factors-into", str(factors)]
        command += [part for name, value in settings.items() for part in (f"--{name}", str(value))]
        answer = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
        with np.load(factors) as file:
            return Trained({name: file[name] for name in ("user", "item")}, answer["seconds"], answer["cpu_seconds"])


def _python() -> Path:
    """Return the Python of a venv that holds implicit, made on first use."""
    python = IMPLICIT_VENV / "bin" / "python"
    if not (IMPLICIT_VENV / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(IMPLICIT_VENV)], check=True)
        packages = [f"implicit=={IMPLICIT}", "numpy", "scipy"]
        subprocess.run([str(python), "-m", "pip", "install", "-qq", *packages], check=True)
        (IMPLICIT_VENV / "complete").touch()
    return python
