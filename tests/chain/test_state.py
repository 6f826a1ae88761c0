import pytest

from erasable.chain import Config
from erasable.data import RatingScale
from erasable.errors import UnknownUser

CONFIG = Config(model="nmf", groups=3, holdout=0.4, seed=2)
POSITIONS = {"a": 0, "b": 1, "c": 0, "d": 2, "e": 1}


@pytest.fixture
def rows(tables):
    return tables.table({"a": "qrstu", "b": "qrs", "c": "rt", "d": "qrstuv", "e": "v"})


@pytest.fixture
def known(chains, rows):
    return chains.dataset(rows, CONFIG, POSITIONS, RatingScale(1, 1))


def held_out_pairs(tables, known):
    return {(user, item) for user, item, _ in tables.as_rows(known.held_out)}


def test_users_and_interactions_are_counted_held_out_or_not(known, rows):
    assert known.users == 5
    assert 0 < len(known.held_out) < len(rows) == known.interactions


def test_a_user_is_found_by_group_and_row(known):
    assert [known.find(user).group for user in "abcde"] == [0, 1, 0, 2, 1]
    assert [known.user_at(known.find(user)) for user in "abcde"] == [*"abcde"]


def test_a_user_who_is_not_there_is_unknown(known):
    for ask in (known.find, known.data_of, lambda user: known.without([user], [])):
        with pytest.raises(UnknownUser, match="'x'"):
            ask("x")


def test_the_data_of_a_user_is_all_of_it(known, rows, tables):
    for user in "abcde":
        assert tables.as_rows(known.data_of([user])) == tables.as_rows(rows.of_users([user]))


def test_without_a_user_nothing_else_changes(known, chains, rows, tables):
    left = known.without(["a"], [])
    expected = chains.dataset(rows.without(users=["a"]), CONFIG, POSITIONS, RatingScale(1, 1))
    assert [group.digest() for group in left.groups] == [group.digest() for group in expected.groups]
    assert left.held_out.digest() == expected.held_out.digest()
    assert [group.digest() for group in left.groups[1:]] == [group.digest() for group in known.groups[1:]]


def test_without_one_interaction_the_user_is_split_again_and_nobody_else(known, chains, rows):
    for user, item in [("a", "q"), ("a", "u"), ("d", "s"), ("b", "r")]:
        left = known.without([], [(user, item)])
        expected = chains.dataset(rows.without(pairs=[(user, item)]), CONFIG, POSITIONS, RatingScale(1, 1))
        assert [group.digest() for group in left.groups] == [group.digest() for group in expected.groups]
        assert left.held_out.digest() == expected.held_out.digest()


def test_a_user_whose_last_training_interaction_goes_gets_a_held_out_one_in_its_place(chains, tables):
    """Each user trains on the interaction with the largest hash; when that is erased, the next one takes over."""
    rows = tables.table({"a": "qrstuvwxyz"})
    config = Config(model="nmf", groups=1, holdout=0.99, seed=0)
    known = chains.dataset(rows, config, {"a": 0}, RatingScale(1, 1))
    trained_on = []
    while len(known.groups[0]):
        assert len(known.groups[0].users) == 1
        item = known.groups[0].items[known.groups[0].item_index[0]]
        trained_on.append(item)
        known = known.without([], [("a", item)])
    assert sorted(trained_on) == list("qrstuvwxyz")
    assert len(known.held_out) == 0


def test_a_user_without_interactions_left_is_gone(known):
    left = known.without([], [("e", "v")])
    assert left.users == 4
    with pytest.raises(UnknownUser):
        left.find("e")


def test_what_it_was_taken_from_stays_as_it_was(known):
    digests = [group.digest() for group in known.groups]
    known.without(["a", "b"], [("d", "q")])
    assert [group.digest() for group in known.groups] == digests


def test_an_interaction_that_is_not_there_changes_nothing(known):
    left = known.without([], [("e", "q")])
    assert [group.digest() for group in left.groups] == [group.digest() for group in known.groups]
    assert left.held_out.digest() == known.held_out.digest()
