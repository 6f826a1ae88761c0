import numpy as np
import pytest

from erasable.models._ease_columns import SignedRows, add_vectors, item_scores


@pytest.fixture(scope="module")
def case():
    """Forty rows, every third of which goes, over 30 items; and a matrix that has an inverse without them."""
    generator = np.random.default_rng(0)
    matrix = (generator.random((40, 30)) < 0.3).astype(np.float64)
    signs = np.where(np.arange(40) % 3 == 0, -1, 1).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(matrix.sum(axis=1))]).astype(np.int64)
    rows = SignedRows(starts, np.nonzero(matrix)[1].astype(np.int32), signs)
    basis = matrix.T @ matrix + 5 * np.eye(30)
    inverse = np.linalg.inv(basis).astype(np.float32)
    return (
        rows,
        inverse,
        np.linalg.inv(np.linalg.inv(inverse.astype(np.float64)) + matrix.T @ (signs[:, None] * matrix)),
    )


def corrected(inverse, vectors, pivots):
    return inverse - (vectors.T / pivots) @ vectors


@pytest.mark.parametrize("steps", [(40,), (1, 40), (16, 17, 40), (15, 33, 40)], ids=str)
def test_vectors_correct_the_inverse_however_they_are_added(case, steps):
    rows, inverse, expected = case
    vectors, pivots = np.full((40, 30), np.nan), np.full(40, np.nan)
    known = 0
    for count in steps:
        part = SignedRows(rows.starts[: count + 1], rows.items, rows.signs[:count])
        add_vectors(inverse, vectors[:count], pivots[:count], part, known)
        known = count
    assert np.abs(corrected(inverse, vectors, pivots) - expected).max() < 1e-12


@pytest.mark.parametrize("owned", [[], [3], [0, 1, 2, 7], [1, 4, 5, 9, 29]], ids=str)
def test_scores_come_from_the_corrected_inverse(case, owned):
    rows, inverse, expected = case
    vectors, pivots = np.empty((40, 30)), np.empty(40)
    add_vectors(inverse, vectors, pivots, rows, 0)
    weights = -expected / expected.diagonal()
    np.fill_diagonal(weights, 0)
    found = item_scores(inverse, expected.diagonal().copy(), vectors, pivots, np.array(owned, np.int32))
    assert found == pytest.approx(weights[owned].sum(axis=0), abs=1e-6)
