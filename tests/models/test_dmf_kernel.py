"""The slopes of the compiled kernel, one array at a time."""

import numpy as np
import pytest

from erasable.models import DMF

ARRAYS = ["user", "item", *DMF.shapes]
SHAPES = {"user": (6, 16), "item": (7, 16), **DMF.shapes}


def exact(values):
    return {name: array.astype(np.float64) for name, array in values.items()}


@pytest.fixture(scope="module", params=[(0, False), (1, True), (4, False), (4, True)], ids=str)
def problem(request, tables, reference, kernel_slopes):
    """Return parameters, samples and the kernel's slopes of one batch, in which one user has every item."""
    negatives, ratings = request.param
    rows = tables.random_table(1, users=6, items=7, ratings=ratings)
    stage = tables.stage(rows, seed=4)
    generator = np.random.default_rng(0)
    values = {name: generator.normal(0, 0.4, shape).astype(np.float32) for name, shape in SHAPES.items()}
    model = DMF(batch=1000, negatives=negatives)
    found = kernel_slopes.slopes_of(model, values, stage)
    return exact(values), reference.samples_of(stage, np.arange(len(rows)), negatives, epoch=0), found


@pytest.mark.full
@pytest.mark.parametrize("name", ARRAYS)
def test_slopes_are_finite_differences_of_the_loss(problem, reference, name):
    values, samples, found = problem
    expected = reference.finite_differences(reference.REFERENCES["dmf"], values, samples, name)
    assert np.abs(expected).max() > 1e-4
    assert np.abs(found[name] - expected).max() < 2e-6


@pytest.mark.parametrize("name", ARRAYS)
def test_slopes_are_those_of_the_reference(problem, reference, name):
    values, samples, found = problem
    expected = reference.REFERENCES["dmf"].slopes(values, samples)[name]
    assert np.abs(found[name] - expected).max() < 2e-6


def test_a_cosine_at_either_end_has_no_slope(tables, kernel_slopes):
    stage = tables.stage(tables.table({"u": ["a"]}, catalogue="a"))
    shapes = {**SHAPES, "user": (1, 16), "item": (1, 16)}
    alike = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}  # cosine 1
    nothing = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}  # no direction at all
    for values in (alike, nothing):
        found = kernel_slopes.slopes_of(DMF(), values, stage)
        assert not any(slopes.any() for slopes in found.values())
