"""Steps of a chain: what they depend on, and what of them is kept."""

import pytest

from erasable.chain import ORIGIN, Config, Dataset, Earlier, arrange, link_names, plan_change, stages_of, train_chain
from erasable.data import RatingScale
from erasable.grouping.points import ALONE
from erasable.grouping.registry import anchors_among
from erasable.models import Effort
from erasable.requests import Request

SCALE = RatingScale(1, 5)
ANCHORED = Config(model="nmf", groups=2, epochs=2, batch=32, anchors=0.5)


@pytest.fixture
def rows(tables):
    return tables.random_table(2, users=20, items=9, ratings=True)


@pytest.fixture
def learned(rows, chains):
    return chains.learn(rows, ANCHORED, scale=SCALE)


def anchors(known):
    return {
        user
        for group in known.groups
        for user, is_one in zip(group.users, anchors_among(group.users, 0.5, 0), strict=True)
        if is_one
    }


def test_a_chain_is_its_stages(learned):
    assert [task.label for task in stages_of(learned.state.dataset)] == ["stage 1", "stage 2"]
    assert [link.parent for link in learned.state.chain] == [ORIGIN, learned.names[0]]


def test_where_rows_are_solved_a_stage_holds_none(learned):
    kinds = [{name.split(".")[0] for name in content} for content in learned.contents()]
    assert kinds == [{"shared"}, {"shared"}]


def test_a_stage_learns_from_anchors_only(learned):
    known = learned.state.dataset
    assert {user for place in (0, 1) for user in known.learners(place).users} == anchors(known)
    assert 0 < len(anchors(known)) < known.users


def test_forgetting_who_is_no_anchor_trains_nothing_and_moves_nobody_s_row(learned, chains):
    known = learned.state.dataset
    user = next(user for user in known.groups[0].users if user not in anchors(known))
    planned = plan_change(learned.state, chains.after(learned.state, [Request(user)]))
    assert (planned.rerun, planned.samples, planned.stages_rerun, planned.cost_ratio) == ((), 0, 0, 0.0)
    after = chains.forget(learned, [Request(user)])
    assert after.state.chain == learned.state.chain
    before = learned.rows()
    assert after.rows() == {other: row for other, row in before.items() if other != user}


def test_forgetting_an_anchor_trains_from_their_stage_on_and_no_rows(learned, chains):
    known = learned.state.dataset
    user = next(user for user in known.groups[1].users if user in anchors(known))
    after = chains.after(learned.state, [Request(user)])
    plan = plan_change(learned.state, after)
    assert plan.rerun == (1,)
    assert plan.samples == stages_of(after)[1].samples


@pytest.mark.parametrize("setting", [{"row_epochs": 7}, {"negatives": 3}])
def test_how_rows_are_solved_does_not_name_a_stage(learned, setting):
    known = learned.state.dataset
    other = ANCHORED.changed(**setting)
    names = link_names(Dataset.of_groups(other, known.catalogue, SCALE, known.groups, known.held_out))
    assert (names == learned.names) == ("row_epochs" in setting)


class TestRisk:
    def arranged(self, table, risky, **settings):
        config = Config(**{"model": "nmf", "groups": 2, "epochs": 1, "risk_threshold": 0.5, **settings})
        frame = Dataset.of_nobody(config, None, SCALE)
        return arrange(table, frame, ALONE, risky=risky)

    def test_the_risky_are_a_group_behind_the_others(self, rows):
        known = self.arranged(rows, {"u0003", "u0007"})
        assert [len(group.users) for group in known.groups] == [9, 9, 2]
        assert known.stages == 3

    def test_where_rows_are_solved_they_shape_nothing(self, rows):
        known = self.arranged(rows, {"u0003", "u0007"}, rows="solved")
        assert known.stages == 2
        assert all(user not in known.learners(place).users for place in (0, 1) for user in ("u0003", "u0007"))

    def test_the_others_are_grouped_as_if_they_were_not_there(self, rows):
        known = self.arranged(rows, {"u0003"})
        alone = self.arranged(rows.without(users=["u0003"]), set())
        assert [group.digest() for group in known.groups[:2]] == [group.digest() for group in alone.groups]

    def test_when_the_last_of_them_leaves_the_group_goes(self, rows):
        known = self.arranged(rows, {"u0003"})
        assert len(known.without(["u0003"], []).groups) == 2

    def test_risky_people_who_are_not_there_make_no_group(self, rows):
        assert len(self.arranged(rows, {"nobody"}).groups) == 2


def test_the_chain_is_trained_from_what_is_given_only(learned, rows):
    assert train_chain(learned.state.dataset, learned.store, Effort(), Earlier.of(learned.state)).chain == (
        learned.state.chain
    )
