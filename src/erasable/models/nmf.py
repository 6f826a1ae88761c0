"""NMF (He et al., "Neural Collaborative Filtering", 2017) in the paper's sizes: start and scores; not gradients."""

import numpy as np
from numpy.typing import NDArray

from erasable.models.embedding_model import ITEM_ROWS, USER_ROWS, EmbeddingModel, blocks
from erasable.models.model import Scorer, Scores
from erasable.models.nmf_kernel import ROW, SHAPES, WIDTH, nmf_shift
from erasable.models.parameters import Arrays

_BLOCK = 2048


class Nmf(EmbeddingModel):
    """A product of two embeddings and two layers on two more, joined into one sigmoid."""

    width = ROW
    shapes = SHAPES
    shift = nmf_shift

    def deviation(self, name: str) -> float:
        """Return the paper's N(0, 0.01²) for weights and rows; biases start at 0."""
        return 0.0 if "bias" in name else 0.01

    def scorer(self, shared: Arrays) -> Scorer:
        """Score before the sigmoid, which changes no order; the items' half of the first layer is computed once."""
        products = np.ascontiguousarray(shared[ITEM_ROWS][:, :WIDTH])
        firsts = shared[ITEM_ROWS][:, WIDTH:] @ shared["item_in"] + shared["first_bias"]
        parts = blocks(len(products), _BLOCK)

        def score(rows: Arrays, owned: NDArray[np.int32]) -> Scores:
            row = rows[USER_ROWS]
            scores = products @ (row[:WIDTH] * shared["product_out"]) + shared["bias_out"]
            first_part = row[WIDTH:] @ shared["user_in"]
            for part in parts:
                first = firsts[part] + first_part
                np.maximum(first, 0, out=first)
                second = first @ shared["hidden"]
                second += shared["second_bias"]
                np.maximum(second, 0, out=second)
                scores[part] += second @ shared["hidden_out"]
            return scores

        return score
