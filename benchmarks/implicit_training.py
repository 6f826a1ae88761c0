"""The side of `implicit_rival.py` that belongs to implicit: one timed training, without erasable.

It reads confidences as a CSR matrix from an .npz file and writes the factors it found to another.
"""

import argparse
import json
import time
from pathlib import Path

import implicit
import numpy as np
from implicit.cpu.als import AlternatingLeastSquares
from scipy.sparse import csr_matrix


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--factors-into", type=Path, required=True)
    parser.add_argument("--factors", type=int, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--regularisation", type=float, required=True)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    with np.load(options.data) as file:
        confidences = csr_matrix((file["values"], file["items"], file["starts"]), shape=tuple(file["shape"]))
    model = AlternatingLeastSquares(
        factors=options.factors,
        iterations=options.iterations,
        regularization=options.regularisation,
        num_threads=options.threads,
        random_state=0,
    )
    began, used = time.perf_counter(), time.process_time()
    model.fit(confidences, show_progress=False)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - used
    np.savez(options.factors_into, user=model.user_factors, item=model.item_factors)
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "implicit": implicit.__version__}))


if __name__ == "__main__":
    main()
