"""`compare`: its figures are those of learning, evaluating and planning; what fails, what is refused, what it says."""

import subprocess
import sys

import numpy as np
import pytest

from erasable import ALS, DataRefused, ModelComparison, Recommender, Refused, WrongSetting, WrongUse, compare
from erasable.models import Popular
from erasable.operations._one_model import _peak_bytes
from erasable.seeding import id_keys
from kit import small_shop

HOLDOUT = 0.3
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


@pytest.fixture(scope="module")
def table():
    return small_shop.table()


@pytest.fixture(scope="module")
def found(table) -> ModelComparison:
    models = ["ease", "nmf:groups=3:epochs=3", ALS(factors=8), Popular, "nmf:groups=99:grouping=random"]
    return compare(table, models, holdout=HOLDOUT, seed=5, threads=1, progress=False)


def recommender(table, **settings) -> Recommender:
    return Recommender(holdout=HOLDOUT, seed=5, threads=1, progress=False, **settings).fit(table)


@pytest.mark.parametrize(
    ("place", "settings"),
    [(0, {"model": "ease"}), (1, {"model": "nmf", "groups": 3, "epochs": 3}), (2, {"model": ALS(factors=8)})],
)
def test_quality_and_cost_are_those_of_learning_evaluating_and_planning(table, found, place, settings):
    own, row = recommender(table, **settings), found.table.to_pylist()[place]
    utility = own.evaluate().values
    assert {name: row[name] for name in ("ndcg@10", "hr@10", "recall@10")} == {
        name: utility[name] for name in ("ndcg@10", "hr@10", "recall@10")
    }
    users = sorted(map(str, own.users))
    chosen = np.argsort(id_keys(5, "forgotten to compare", users))[:9]
    costs = [own.plan(users[one]).cost_ratio for one in chosen.tolist()]
    assert row["forget_cost"] == np.median(costs)


def test_a_row_for_each_model_under_the_name_it_was_given(found):
    names = ["ease", "nmf:groups=3:epochs=3", "ALS(factors=8)", "popular", "nmf:groups=99:grouping=random"]
    assert found.table["model"].to_pylist() == names
    measured = found.table.to_pylist()[:4]
    assert all(row["learn_seconds"] > 0 and row["forget_seconds"] > 0 and row["failed"] is None for row in measured)
    # A process that has loaded numpy and numba holds more than 50 MB; small data does not take gigabytes.
    assert all(50e6 < row["memory_bytes"] < 2e9 for row in measured)


def test_a_model_that_fails_has_the_reason_and_no_figure(found):
    *_, failed = found.table.to_pylist()
    assert failed.pop("model").startswith("nmf")
    assert failed.pop("failed").startswith("there are only 30 users for 99 groups")
    assert {*failed.values()} == {None}


def test_if_all_fail_it_is_refused(table):
    with pytest.raises(Refused, match=r"no model could be measured; nmf.*there are only 30 users"):
        compare(table, ["nmf:groups=99:grouping=random"], threads=1, progress=False)


def test_it_says_how_it_was_measured(table, found):
    assert found.facts["people_forgotten"] == 9
    assert found.facts["settings"]["holdout"] == HOLDOUT
    assert not any("quick" in note for note in found.notes)
    quick = compare(table, ["nmf"], quick=True, threads=1, progress=False)
    assert quick.facts["people_forgotten"] == 3
    assert quick.facts["settings"]["holdout"] == 0.1
    assert quick.notes[-1].startswith("quick: ")
    assert "nmf with 8 epochs, fewer than usual" in quick.notes[-1]


def test_most_people_shape_nothing_where_anchors_are_few_and_that_is_said(table):
    found = compare(table, ["als:anchors=0.1", "als"], threads=1, progress=False)
    assert found.table["forget_cost"].to_pylist()[0] == 0
    said = [note for note in found.notes if "als:anchors=0.1" in note]
    assert len(said) == 1
    assert "10 % of the people shape" in said[0]


def test_epochs_that_are_given_stay_when_it_is_quick(table):
    found = compare(table, ["nmf:epochs=2"], quick=True, threads=1, progress=False)
    assert "epochs" not in found.notes[-1]


def test_weights_reach_every_model(table):
    times = table.num_rows
    sales = table.select(["user_id", "item_id"]).append_column("quantity", [[1 + row % 5 for row in range(times)]])
    found = compare(sales, ["als", "popular"], weight="quantity", threads=1, progress=False)
    own = Recommender("als", holdout=0.1, threads=1, progress=False).fit(sales, weight="quantity")
    assert found.table["ndcg@10"].to_pylist()[0] == own.evaluate().values["ndcg@10"]
    assert found.facts["settings"]["max_weight"] == 10


def test_the_latest_interactions_are_held_out_from_every_model_if_that_is_asked_for(table):
    timed = table.append_column("timestamp", [[float(row * 7 % 97) for row in range(table.num_rows)]])
    found = compare(timed, ["popular"], split="leave-last-out", threads=1, progress=False)
    own = Recommender("popular", split="leave-last-out", threads=1, progress=False).fit(timed)
    assert found.table["ndcg@10"].to_pylist() == [own.evaluate().values["ndcg@10"]]
    assert found.facts["settings"]["split"] == "leave-last-out"
    assert found.facts["held_out"] == found.facts["users"]


def test_without_times_what_needs_them_is_refused(table):
    found = compare(table, ["sasrec:epochs=1", "popular"], threads=1, progress=False)
    assert found.table["ndcg@10"].to_pylist()[0] is None
    assert "sasrec learns from the order in time, and there is no time: name" in found.table["failed"].to_pylist()[0]
    with pytest.raises(DataRefused, match="needs times, and there are none"):
        compare(table, ["popular"], split="leave-last-out", threads=1, progress=False)


@pytest.mark.parametrize(
    ("models", "error", "said"),
    [
        (["ease", "ease"], WrongUse, "the model ease is given twice: leave one out"),
        ([], WrongUse, "there is no model to compare: name some, such as als"),
        (["ease:holdout=0.2"], WrongUse, "`holdout` must be the same for all models"),
        (["ease:split=leave-last-out"], WrongUse, "`split` must be the same for all models"),
        (["ease:seed=2"], WrongUse, "`seed` must be the same for all models"),
        (["als:factors"], WrongUse, "is no model with settings: write NAME or NAME:setting=value"),
        (["als:factor=2"], WrongSetting, "did you mean `factors`"),
        (["als:factors=0"], WrongSetting, "at least 1"),
        (["eease"], WrongSetting, "did you mean 'ease'"),
        (["ALS"], WrongSetting, "did you mean 'als'"),
        (["Item_KNN"], WrongSetting, "did you mean 'item-knn'"),
        ("ease", WrongUse, r"give a list of models, such as \['ease'\]"),
        (["ease:model=als"], WrongUse, "names two models: write als instead"),
        (["ease:features=author"], WrongUse, "`features` needs more than interactions"),
        (["ease:risk_threshold=0.3"], WrongUse, "`risk_threshold` needs more than interactions"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_read(models, error, said):
    with pytest.raises(error, match=said):
        compare("no such file.csv", models)


@pytest.mark.parametrize("settings", [{"holdout": 0}, {"split_time": "2030-01-01"}])
def test_where_nothing_is_held_out_it_is_refused_before_anything_is_learned(table, settings, monkeypatch):
    timed = table.append_column("timestamp", [[float(row) for row in range(table.num_rows)]])
    monkeypatch.setattr("erasable.operations.compare._in_own_process", None)
    with pytest.raises(Refused, match="nothing is held out to measure on") as refused:
        compare(timed, ["popular"], threads=1, progress=False, **settings)
    assert "give --holdout 0.1 or --split leave-last-out" in refused.value.said.of_command


def test_memory_is_that_of_processes_that_it_starts_too():
    before = _peak_bytes()
    with subprocess.Popen([sys.executable, "-c", "import numpy; print(1, flush=True); input()"], **PIPES) as child:
        child.stdout.readline()
        assert _peak_bytes() > before + 10e6
        child.kill()


def test_a_class_that_another_process_can_not_import_is_refused(table):
    class Local(Popular):
        name = "local"

    with pytest.raises(WrongUse, match="put its class into a module that can be imported"):
        compare(table, [Local], threads=1)


def test_a_class_of_a_module_is_imported_there(table, tmp_path, monkeypatch):
    (tmp_path / "shop_models.py").write_text(
        "from erasable.models import Popular\n\n\nclass Own(Popular):\n    name = 'own'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from shop_models import Own

    found = compare(table, [Own, "popular"], threads=1, progress=False).table.to_pylist()
    assert found[0]["model"] == "own"
    assert found[0]["ndcg@10"] == found[1]["ndcg@10"]
