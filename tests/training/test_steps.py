"""Steps of a chain: what they depend on, and what of them is kept."""

import numpy as np
import pytest

from erasable.data import Catalogue, RatingScale
from erasable.grouping import ALONE, anchors_among
from erasable.models import Effort
from erasable.training import Config, Earlier, Knowledge, arrange, link_names, steps_of, tasks_of, train_chain
from erasable.unlearning import Request, plan_change

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


def test_stages_come_first_then_the_rows_of_each_group(learned):
    labels = [step.label for step in steps_of(learned.state.knowledge)]
    assert labels == ["stage 1", "stage 2", "rows of group 1", "rows of group 2"]
    assert [link.parent for link in learned.state.chain[2:]] == [learned.names[1]] * 2


def test_a_stage_holds_no_rows_and_rows_hold_nothing_shared(learned):
    kinds = [{name.split(".")[0] for name in content} for content in learned.contents()]
    assert kinds == [{"shared"}, {"shared"}, {"rows"}, {"rows"}]


def test_a_stage_learns_from_anchors_only(learned):
    known = learned.state.knowledge
    assert {user for place in (0, 1) for user in known.learners(place).users} == anchors(known)
    assert 0 < len(anchors(known)) < known.users


def test_forgetting_who_is_no_anchor_changes_no_stage_and_no_row_of_anyone_else(learned, chains):
    known = learned.state.knowledge
    user = next(user for user in known.groups[0].users if user not in anchors(known))
    before, place = learned.contents(), known.find(user)[1]
    after = chains.forget(learned, [Request(user)])
    assert after.names[:2] == learned.names[:2]
    assert after.names[3] == learned.names[3]
    width = before[2]["rows.user"][1][1] * 4
    rows = before[2]["rows.user"][2]
    assert after.contents()[2]["rows.user"][2] == rows[: place * width] + rows[(place + 1) * width :]


def test_that_visits_no_sample(learned, chains):
    known = learned.state.knowledge
    user = next(user for user in known.groups[0].users if user not in anchors(known))
    plan = plan_change(learned.state, chains.after(learned.state, [Request(user)]))
    assert (plan.samples, plan.stages_rerun, plan.cost_ratio) == (0, 0, 0.0)
    assert plan.rerun == (2,)


def test_forgetting_an_anchor_solves_every_row_again(learned, chains):
    known = learned.state.knowledge
    user = next(user for user in known.groups[1].users if user in anchors(known))
    after = chains.after(learned.state, [Request(user)])
    plan = plan_change(learned.state, after)
    steps = steps_of(after)
    assert plan.rerun == (1, 2, 3)
    assert plan.samples == sum(steps[place].samples for place in plan.rerun)


def test_a_changed_user_alone_is_solved_again(learned, chains):
    known = learned.state.knowledge
    owned = np.diff(known.groups[0].user_starts)
    user = next(
        user
        for user, count in zip(known.groups[0].users, owned, strict=True)
        if user not in anchors(known) and count > 1
    )
    item = sorted(known.items_of(user))[0]
    after = chains.after(learned.state, [Request(user, (item,))])
    task = tasks_of(after, Earlier.of(learned.state))[0]
    own = after.groups[0].of_users([user])
    model_samples = 5 * len(own) if len(own) < len(own.items) else len(own)
    assert task.visits == ANCHORED.row_epochs * model_samples


def test_what_a_link_says_it_took_is_for_all_of_its_samples(learned, chains):
    known = learned.state.knowledge
    user = next(user for user in known.groups[0].users if user not in anchors(known))
    after = chains.forget(learned, [Request(user)])
    before, now = learned.state.chain[2], after.state.chain[2]
    assert now.samples < before.samples
    assert now.seconds / now.samples == pytest.approx(before.seconds / before.samples)


def test_without_what_it_was_made_from_nothing_of_a_step_is_kept(learned, chains):
    known = learned.state.knowledge
    user = next(user for user in known.groups[0].users if user not in anchors(known))
    after = chains.after(learned.state, [Request(user)])
    alone = tasks_of(after, Earlier(learned.state.chain))
    assert [task.visits for task in alone] == [steps_of(after)[2].samples]


@pytest.mark.parametrize("setting", [{"row_epochs": 7}, {"negatives": 3}])
def test_names_of_rows_cover_their_settings(learned, setting):
    known = learned.state.knowledge
    other = Config(**{**ANCHORED.model_dump(), **setting})
    names = link_names(Knowledge(other, known.catalogue, SCALE, known.groups, known.held_out))
    assert names[2] != learned.names[2]
    assert (names[0] == learned.names[0]) == ("row_epochs" in setting)


class TestRisk:
    def arranged(self, table, risky, **settings):
        config = Config(**{"model": "nmf", "groups": 2, "epochs": 1, "risk_threshold": 0.5, **settings})
        frame = Knowledge(config, Catalogue.from_items(table.items), SCALE, (), table)
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
    assert train_chain(learned.state.knowledge, learned.store, Effort(), Earlier.of(learned.state)).chain == (
        learned.state.chain
    )
