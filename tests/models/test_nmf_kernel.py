"""The slopes of the compiled kernel, one array at a time."""

import numpy as np
import pytest

from erasable.models import NMF

ARRAYS = ["user", "item", *NMF.shapes]


@pytest.fixture(scope="module", params=[(0, False), (1, True), (4, False), (4, True)], ids=str)
def problem(request, tables, reference, kernel_slopes):
    """Return parameters, samples and the kernel's slopes of one batch, in which one user has every item."""
    negatives, ratings = request.param
    rows = tables.random_table(1, users=6, items=7, ratings=ratings)
    stage = tables.stage(rows, seed=4)
    shapes = {"user": (6, 32), "item": (7, 32), **NMF.shapes}
    generator = np.random.default_rng(0)
    values = {name: generator.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}
    model = NMF(batch=1000, negatives=negatives)
    found = kernel_slopes.slopes_of(model, values, stage)
    exact = {name: array.astype(np.float64) for name, array in values.items()}
    return exact, reference.samples_of(stage, np.arange(len(rows)), negatives, epoch=0), found


@pytest.mark.full
@pytest.mark.parametrize("name", ARRAYS)
def test_slopes_are_finite_differences_of_the_loss(problem, reference, name):
    values, samples, found = problem
    expected = reference.finite_differences(reference.REFERENCES["nmf"], values, samples, name)
    assert np.abs(expected).max() > 1e-4
    assert np.abs(found[name] - expected).max() < 2e-6


@pytest.mark.parametrize("name", ARRAYS)
def test_slopes_are_those_of_the_reference(problem, reference, name):
    values, samples, found = problem
    expected = reference.REFERENCES["nmf"].slopes(values, samples)[name]
    assert np.abs(found[name] - expected).max() < 2e-6


def test_scores_far_from_one_half_have_finite_slopes(tables, kernel_slopes):
    stage = tables.stage(tables.table({"u": ["a"], "v": ["b"]}, catalogue="abc"))
    shapes = {"user": (2, 32), "item": (3, 32), **NMF.shapes}
    for sign in (-1, 1):
        values = {name: np.full(shape, 1.0, np.float32) for name, shape in shapes.items()}
        values |= {"bias_out": np.array([sign * 1e4], np.float32)}
        found = kernel_slopes.slopes_of(NMF(batch=100), values, stage)
        assert all(np.isfinite(slopes).all() for slopes in found.values())
