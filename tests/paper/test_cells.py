import json

import pytest

from erasable.errors import DataRefused
from erasable.paper._cells import Cell, CellStore, in_batches

SETTINGS = {"model": "nmf", "strategy": "laser", "grouping": "random", "groups": 2, "epochs": 2, "seed": 0}
WHERE = {"seconds": 1.0}


def cell(request="learn", **settings):
    return Cell("utility", "digest", {**SETTINGS, **settings}, {"request": request})


def test_equal_facts_have_the_same_name_and_any_other_fact_another():
    assert cell().name == cell().name
    others = [cell("one"), cell(seed=1), Cell("time", "digest", SETTINGS, {"request": "learn"})]
    others.append(Cell("utility", "other", SETTINGS, {"request": "learn"}))
    assert len({one.name for one in [cell(), *others]}) == 5


def test_a_cell_is_named_in_words_where_someone_watches():
    assert str(cell("rand@5")) == "utility nmf laser random 2 groups seed 0 rand@5"
    assert str(Cell("balance", "digest", {"strategy": "retrain", "seed": 1})) == "balance retrain seed 1"


def test_a_result_is_kept_with_the_facts_that_decide_it(tmp_path):
    store = CellStore(tmp_path / "cells")
    assert cell() not in store
    store.put(cell(), {"value": 0.25}, WHERE)
    assert cell() in store
    assert store.get(cell()) == {"value": 0.25}
    (file,) = (tmp_path / "cells").iterdir()
    kept = json.loads(file.read_text())
    assert kept["cell"]["settings"] == SETTINGS
    assert kept["circumstances"] == store.circumstances(cell()) == WHERE


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"cell": {"data": "other"}, "result": 1, "circumstances": {}}'])
def test_a_file_that_is_not_the_result_of_its_cell_is_none(tmp_path, content):
    store = CellStore(tmp_path)
    (tmp_path / f"{cell().name}.json").write_text(content)
    assert cell() not in store
    with pytest.raises(DataRefused, match=f"{cell().name}.json: is missing or damaged"):
        store.get(cell())


def test_half_a_result_is_none(tmp_path):
    store = CellStore(tmp_path)
    store.put(cell(), {"value": 0.25}, WHERE)
    file = tmp_path / f"{cell().name}.json"
    file.write_text(file.read_text()[:-20])
    assert cell() not in store


def test_a_write_that_fails_leaves_no_result(tmp_path):
    store = CellStore(tmp_path)
    with pytest.raises(TypeError):
        store.put(cell(), {"value": object()}, WHERE)
    assert list(tmp_path.iterdir()) == []


class TestBatches:
    def test_each_cell_comes_once(self):
        batches = in_batches([cell(), cell(), cell("one")])
        assert [len(batch) for batch in batches] == [2]

    def test_cells_that_need_other_groups_are_apart_and_models_are_together(self):
        batches = in_batches([cell(), cell(groups=4), cell(model="dmf"), cell(seed=1)])
        assert [len(batch) for batch in batches] == [2, 1, 1]

    def test_cells_of_one_chain_stand_next_to_each_other(self):
        mixed = [cell(request, model=model) for request in ("one", "learn", "rand@5") for model in ("nmf", "dmf")]
        (batch,) = in_batches(mixed)
        models = [one.settings["model"] for one in batch]
        assert models in (["nmf"] * 3 + ["dmf"] * 3, ["dmf"] * 3 + ["nmf"] * 3)

    def test_the_same_groups_are_shared_however_they_are_said_and_learned_from(self):
        said = cell(grouping="cbkm", order="easy", epoch_budget="full")
        alone = cell(grouping="cbkm", strategy="sisa", aggregate="own")
        assert len(in_batches([cell(grouping="cbkm"), said, alone])) == 1
        assert len(in_batches([cell(grouping="cbkm"), cell(grouping="cbkm", order="hard")])) == 2

    def test_with_one_group_it_does_not_matter_how_it_was_made(self):
        assert len(in_batches([cell(strategy="retrain"), cell(groups=1, grouping="bkm")])) == 1

    def test_what_judges_is_no_other_chain(self):
        sisa = [
            cell(request, strategy="sisa", aggregate=aggregate)
            for request in ("learn", "one")
            for aggregate in ("mean", "own")
        ]
        (batch,) = in_batches(sisa)
        assert [one.details["request"] for one in batch] == ["learn", "learn", "one", "one"]
