"""A model of one's own: four methods, and what it need not say."""

import numpy as np
import pytest
from scipy import sparse

from erasable.data import Ids
from erasable.models import Amends, Effort, Model, Prepares, Probabilities, Subtracts
from erasable.models.base import prepared_by, probability_by
from kit.counts import Counts
from kit.model_suite import MODELS
from kit.tables import stage, table

ABILITIES = (Amends, Prepares, Probabilities, Subtracts)


@pytest.fixture
def rows():
    return table({"ann": "ab", "bob": "ac", "cat": "a"})


def test_four_methods_are_required():
    assert Model.__abstractmethods__ == {"start", "train", "represent", "score"}
    with pytest.raises(TypeError, match="abstract"):
        Model()


def test_a_model_has_no_ability_that_it_does_not_have():
    assert not any(isinstance(Counts(), ability) for ability in ABILITIES)


def test_ours_have_theirs():
    found = {name: [one.__name__ for one in ABILITIES if isinstance(kind.model, one)] for name, kind in MODELS.items()}
    few = ["Prepares", "Probabilities"]
    most = ["Amends", *few, "Subtracts"]
    assert found == {
        "nmf": few,
        "dmf": few,
        "als": few,
        "ease": most,
        "dense ease": most,
        "item-knn": most,
        "popular": ["Amends", "Probabilities", "Subtracts"],
    }
    assert all(isinstance(kind.model, Model) for kind in MODELS.values())


def test_what_it_does_not_say_has_a_default(rows):
    model = Counts()
    shared = model.train(model.start(rows.items, 0), stage(rows), Effort()).shared
    assert prepared_by(model, shared) is shared
    assert model.samples(rows, 3) == 15
    assert not model.trains_rows
    assert probability_by(model, np.array([0.0], np.float32)).tolist() == [0.5]


def test_a_stranger_s_row_is_of_zeros_like_those_of_others(rows):
    model = Counts()
    found = model.newcomers(model.start(rows.items, 0), Ids.of(["x", "y", "z"]), rows.items, 0)
    assert (found["own"].tolist(), found["own"].dtype) == ([[0, 0]] * 3, np.float32)


class Folding(Counts):
    """Multiplies people's items with the shared parameters, so that both must be over the same items."""

    def represent(self, prepared, people, effort):
        data = people.interactions
        table = sparse.csr_array(
            (data.rating, data.item_index, data.user_starts), shape=(len(data.users), len(data.items))
        )
        return {"own": np.stack([table @ prepared["counts"]] * 2, axis=1)}


def test_a_stranger_s_row_is_asked_for_over_the_items_that_are_known(rows):
    model = Folding()
    found = model.newcomers(model.start(rows.items, 0), Ids.of(["x"]), rows.items, 0)
    assert found["own"].tolist() == [[0, 0]]


def test_further_items_begin_as_at_the_start_and_the_rest_stays(rows):
    model = Counts()
    shared = model.train(model.start(rows.items, 0), stage(rows), Effort()).shared
    longer = model.extended(shared, Ids.of("abcde"), 0)
    assert longer["counts"].tolist() == [3, 1, 1, 0, 0]
    assert longer["total"].tolist() == shared["total"].tolist()
    assert not any(array.flags.writeable for array in longer.values())
    assert not np.shares_memory(longer["total"], shared["total"])
