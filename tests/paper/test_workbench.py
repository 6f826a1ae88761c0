from pathlib import Path

import numpy as np
import pytest

from erasable.data import ColumnNames
from erasable.models import Effort
from erasable.paper._cells import users_to_forget
from erasable.paper._workbench import DataSource, Latest, Workbench, data_digest, learn_chain

SETTINGS = {"model": "nmf", "grouping": "random", "groups": 3, "epochs": 2, "holdout": 0.2, "seed": 1}


@pytest.fixture
def workbench(ratings_file):
    return Workbench(DataSource(ratings_file, ColumnNames()), threads=1)


def names(chain):
    return [link.fingerprint for link in chain.state.chain]


class TestLatest:
    def test_what_was_made_last_is_used_again(self):
        latest = Latest()
        first = latest.get({"a": 1}, object)
        assert latest.get({"a": 1}, object) is first

    def test_other_facts_make_it_anew(self):
        latest = Latest()
        first = latest.get({"a": 1}, object)
        assert latest.get({"a": 2}, object) is not first
        assert latest.get({"a": 1}, object) is not first


class TestDataSource:
    def test_data_are_called_like_their_file(self):
        assert DataSource(Path("some/clicks.csv.gz"), ColumnNames()).name == "clicks"

    def test_or_like_its_folder_if_the_file_says_little(self):
        assert DataSource(Path("some/ml-1m/ratings.csv"), ColumnNames()).name == "ml-1m"

    def test_or_as_given(self):
        assert DataSource(Path("clicks.csv"), ColumnNames(), given_name="shop").name == "shop"

    def test_a_declared_scale_wins(self, ratings_file):
        assert DataSource(ratings_file, ColumnNames(), (0, 10)).read()[1].high == 10


class TestDigest:
    def test_ids_of_items_and_the_scale_name_the_data_too(self, ratings_file, tmp_path):
        renamed = tmp_path / "renamed.csv"
        lines = ratings_file.read_text().splitlines()
        renamed.write_text("\n".join([lines[0], *(line.replace(",", ",x", 1) for line in lines[1:])]))
        sources = [
            DataSource(ratings_file, ColumnNames()),
            DataSource(renamed, ColumnNames()),
            DataSource(ratings_file, ColumnNames(), (0, 10)),
        ]
        assert len({data_digest(*source.read()) for source in sources}) == 3


class TestWorkbench:
    def test_a_chain_is_learned_once_for_all_cells_that_need_it(self, workbench):
        first = workbench.learned(SETTINGS)
        assert workbench.learned(SETTINGS).state.chain is first.state.chain

    def test_another_model_keeps_the_groups(self, workbench):
        one, other = workbench.grouped(SETTINGS), workbench.grouped({**SETTINGS, "model": "dmf", "epochs": 9})
        assert one.buckets is other.buckets
        assert other.config.model == "dmf"
        assert other.config.epochs == 9

    @pytest.mark.parametrize("change", [{"seed": 2}, {"groups": 2}, {"holdout": 0.1}, {"min_interactions": 3}])
    def test_what_decides_the_groups_decides_them_anew(self, workbench, change):
        one, other = workbench.grouped(SETTINGS), workbench.grouped({**SETTINGS, **change})
        assert one.groups is not other.groups

    def test_both_ways_to_judge_share_one_chain(self, workbench):
        sisa = {**SETTINGS, "strategy": "sisa"}
        mean = workbench.learned({**sisa, "aggregate": "mean"})
        own = workbench.learned({**sisa, "aggregate": "own"})
        assert mean.state.chain is own.state.chain
        assert [chain.state.dataset.config.aggregate for chain in (mean, own)] == ["mean", "own"]

    @pytest.mark.parametrize("strategy", ["laser", "sisa", "retrain"])
    def test_forgetting_is_never_having_known(self, workbench, strategy):
        settings = {**SETTINGS, "strategy": strategy}
        users = users_to_forget(workbench.learned(settings).state.dataset, "rand@5")
        after, forgetting = workbench.forgotten(settings, "rand@5")
        left = workbench.grouped(settings).without(users, ())
        fresh = learn_chain(left, Effort(1))
        assert names(after) == names(fresh)
        for name in names(after):
            one, other = after.checkpoints.get(name).arrays(), fresh.checkpoints.get(name).arrays()
            assert all(np.array_equal(one[key], other[key]) for key in one)
        assert forgetting.users == len(users)
        assert forgetting.cost_ratio > 0

    def test_forgetting_leaves_the_learned_chain_as_it_was(self, workbench):
        before = names(workbench.learned(SETTINGS))
        workbench.forgotten(SETTINGS, "rand@5")
        assert names(workbench.learned(SETTINGS)) == before

    def test_forgetting_nobody_costs_nothing(self, workbench):
        chain, forgetting = workbench.forgotten(SETTINGS, "learn")
        assert forgetting is None
        assert names(chain) == names(workbench.learned(SETTINGS))
