"""The side of `item_knn.py` that belongs to irspack: one timed training, without erasable.

It reads who has what as a CSR matrix from an .npz file and writes the item-item similarities it found to another.
"""

import argparse
import json
import time
from pathlib import Path

import irspack
import numpy as np
from irspack import CosineKNNRecommender
from scipy.sparse import csr_matrix, save_npz


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--similarities-into", type=Path, required=True)
    parser.add_argument("--neighbours", type=int, required=True)
    parser.add_argument("--shrinkage", type=float, required=True)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    with np.load(options.data) as file:
        ones = np.ones(len(file["items"]))
        owned = csr_matrix((ones, file["items"], file["starts"]), shape=tuple(file["shape"]))
    # It counts the item itself among its nearest and removes it afterwards.
    settings = {"shrinkage": options.shrinkage, "top_k": options.neighbours + 1, "n_threads": options.threads}
    model = CosineKNNRecommender(owned, normalize=True, **settings)
    began, used = time.perf_counter(), time.process_time()
    model.learn()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - used
    save_npz(options.similarities_into, csr_matrix(model.W))
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "irspack": irspack.__version__}))


if __name__ == "__main__":
    main()
