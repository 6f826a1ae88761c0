import pytest

from erasable.chain import Config
from erasable.errors import UnknownUser
from erasable.requests import Request

ROWS = {"a": "pqr", "b": "s", "c": "pq", "d": "t", "e": "pq", "f": "rst"}
POSITIONS = {"a": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 2}


@pytest.fixture(params=["nmf", "dmf"])
def learned(request, chains, tables):
    rows = tables.table(ROWS, catalogue="pqrstu")
    return chains.learn(rows, Config(model=request.param, groups=3, epochs=3), POSITIONS, declared=True)


def test_the_old_state_and_its_checkpoints_stay_until_the_caller_destroys_them(learned, chains):
    before = learned.contents()
    after = chains.forget(learned, [Request("c")]).state
    assert learned.contents() == before
    learned.store.keep_only(link.fingerprint for link in after.chain)
    assert [name in learned.store for name in learned.names] == [True, False, False]
    assert len(chains.LearnedChain(after, learned.store).contents()) == 3


def test_nobody_is_known_any_more_who_was_forgotten(learned, chains):
    after = chains.forget(learned, [Request("c"), Request("e")]).state
    assert after.dataset.users == 4
    for user in "ce":
        with pytest.raises(UnknownUser):
            after.dataset.find(user)
        with pytest.raises(UnknownUser):
            chains.after(after, [Request(user)])


def test_an_unknown_user_changes_nothing(learned, chains):
    before = learned.contents()
    with pytest.raises(UnknownUser):
        chains.forget(learned, [Request("a"), Request("nobody")])
    assert learned.contents() == before


def test_checkpoints_before_the_group_are_kept_and_those_after_have_new_names(learned, chains):
    for user, kept in [("a", 0), ("d", 1), ("f", 2)]:
        after = chains.forget(learned, [Request(user)]).state
        assert [link.fingerprint in learned.names for link in after.chain] == [True] * kept + [False] * (3 - kept)


def test_catalogue_scale_and_config_stay_as_they_were_declared(learned, chains):
    """Only d and f had the item t; it can still be recommended."""
    after = chains.forget(learned, [Request("d"), Request("f")]).state
    assert after.dataset.catalogue is learned.state.dataset.catalogue
    assert after.dataset.scale == learned.state.dataset.scale
    assert after.dataset.config == learned.state.dataset.config
    last = learned.store.get(after.chain[-1].fingerprint)
    assert last.parameters.shared["item"].shape[0] == 6


def test_no_request_reruns_nothing(learned, chains):
    assert chains.forget(learned, []).state.chain == learned.state.chain
