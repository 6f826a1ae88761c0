import numpy as np
import pytest

from erasable.chain import Config
from erasable.data import RatingScale
from erasable.errors import DataRefused, Refused
from erasable.evaluation.protocols import UnseenItems, cases_of, cross_entropies, group_losses
from erasable.models.registry import make_model
from kit.model_suite import scorer
from kit.rated_shop import rated_shop
from kit.tables import table


def losses(learned, test, threads=1):
    return group_losses(learned.state, learned.checkpoints, test, threads)


def sigmoid(score):
    return 1 / (1 + np.exp(-score))


def entropy(score, target):
    return -(target * np.log(sigmoid(score)) + (1 - target) * np.log(1 - sigmoid(score)))


def test_cross_entropies_worked_by_hand():
    found = cross_entropies(np.array([0.5, 0.25, 0.8]), np.array([0.4, 0.0, 1.0]))
    assert found == pytest.approx([np.log(2), -np.log(0.75), -np.log(0.8)])


def test_certainty_costs_much_but_not_without_end():
    assert np.isfinite(cross_entropies(np.array([0.0, 1.0]), np.array([1.0, 0.0]))).all()


def test_worked_by_hand(shop):
    # ann has a in training and b, c, d in the test set: nothing is left to draw. Scores 2, 3, 1; ratings 5, 2, 4 of 5.
    # cat has a in training and d in the test set (score 2, rating 1 of 5); one of b (1) and c (−2) is drawn.
    first, second = losses(shop, shop.state.dataset.held_out)
    assert first == pytest.approx(np.mean([entropy(2, 1), entropy(3, 0.4), entropy(1, 0.8)]))
    assert second in [pytest.approx((entropy(2, 0.2) + entropy(drawn, 0)) / 2) for drawn in (1, -2)]


def test_without_negatives_only_the_test_interactions_count():
    shop = rated_shop(negatives=0)
    assert losses(shop, shop.state.dataset.held_out)[1] == pytest.approx(entropy(2, 0.2))


def test_a_group_without_test_interactions_has_no_loss(shop):
    first, second = losses(shop, shop.state.dataset.held_out.of_users(["ann"]))
    assert first > 0
    assert second is None
    assert losses(shop, table({"ann": {"b": 5.0}, "cat": {"x": 5.0}}))[1] is None  # x is not in the catalogue


def test_what_can_not_be_measured_is_refused(shop):
    with pytest.raises(Refused, match="no user of the test set is known"):
        losses(shop, table({"nobody": {"b": 5.0}}))
    with pytest.raises(DataRefused, match="outside the scale"):
        losses(shop, table({"ann": {"b": 6.0}}))


def by_numpy(state, store, test, judge):
    """Compute the losses anew: scores from the checkpoints, targets and negatives put together user by user."""
    dataset = state.dataset
    model = make_model(dataset.config)
    unseen = UnseenItems(dataset.items, dataset.config.seed, "test negatives")
    found = [[] for _ in dataset.groups]
    for case in cases_of(dataset, test):
        position = case.place.group
        rows = store.get(state.chain[position].fingerprint).parameters.rows["user"]
        shared = store.get(state.chain[judge(position)].fingerprint).parameters.shared
        (row,) = dataset.groups[position].users.positions([case.user])
        owned = dataset.groups[position].items_at(row)
        known = dataset.known(judge(position)).places.tolist()
        own = np.array([known.index(item) for item in owned.tolist() if item in known], np.int32)
        scores = scorer(model, shared)({"user": rows[row]}, own).astype(np.float64)
        p = sigmoid(scores) if dataset.config.model == "nmf" else np.clip(scores, 1e-4, 1 - 1e-4)
        p = dict(zip(known, p.tolist(), strict=True))
        target = dict(zip(case.items.tolist(), (case.ratings / dataset.scale.high).tolist(), strict=True))
        target = {item: value for item, value in target.items() if item in p}
        unknown = [item for item in range(len(dataset.items)) if item not in p]
        seen = np.union1d(np.union1d(owned, list(target)), unknown).astype(np.int64)
        drawn = unseen.draw(case.user, dataset.config.setting("negatives") * len(target), seen)
        assert not {*drawn.tolist()} & ({*owned.tolist()} | {*target})
        target |= dict.fromkeys(drawn.tolist(), 0.0)
        found[position] += [-(t * np.log(p[item]) + (1 - t) * np.log(1 - p[item])) for item, t in target.items()]
    return [np.mean(values) for values in found]


class TestAgainstNumpy:
    def test_a_chain_is_judged_by_its_last_stage(self, trained):
        state, store = trained
        found = group_losses(state, store, state.dataset.held_out, 2)
        assert found == pytest.approx(by_numpy(state, store, state.dataset.held_out, lambda position: 1), rel=1e-6)

    @pytest.mark.parametrize("model", ["nmf", "dmf"])
    def test_a_group_trained_alone_is_judged_by_its_own_model(self, tables, chains, model):
        data = tables.random_table(3, users=12, items=30, ratings=True)
        config = Config(model=model, strategy="sisa", aggregate="own", groups=3, epochs=3, holdout=0.3)
        learned = chains.learn(data, config, scale=RatingScale(1, 5))
        test = learned.state.dataset.held_out
        found = group_losses(learned.state, learned.store, test, 1)
        assert found == pytest.approx(by_numpy(learned.state, learned.store, test, lambda own: own), rel=1e-6)
        assert len(found) == 3
        assert len(learned.state.dataset.known(0)) < len(learned.state.dataset.items)


@pytest.mark.parametrize("threads", [2, 500])
def test_threads_change_nothing(trained, threads):
    state, store = trained
    one, many = (group_losses(state, store, state.dataset.held_out, number) for number in (1, threads))
    assert one == many


def test_removing_a_user_changes_no_other_group_s_loss(trained):
    state, store = trained
    test = state.dataset.held_out
    user = next(case.user for case in cases_of(state.dataset, test) if case.place.group == 0)
    before, after = (group_losses(state, store, rows, 1) for rows in (test, test.without(users=[user])))
    assert before[0] != after[0]
    assert before[1] == after[1]
