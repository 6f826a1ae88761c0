"""Serving from memory: people are gone at once, and what is current is followed."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from erasable.chain import Config, Link, State
from erasable.errors import Refused, UnknownUser
from erasable.models._ease import EASE
from erasable.operations import MemoryStorage, Work, forget, learn_more, recommend, withdraw_submitted
from erasable.operations.learn import learn_into
from erasable.operations.prepare import NO_INPUTS
from erasable.recommender import Recommender
from erasable.recommender._serving import Serving
from erasable.requests import Request
from kit.asking import submit


@pytest.fixture
def ease(table):
    """A recommender whose model can be rid of someone at once."""
    memory = MemoryStorage()
    with memory.writing() as session:
        learn_into(session, table, Config(model="ease", regularisation=2.0), NO_INPUTS, Work(1))
    return memory


def scores(found):
    return {one.item_id: one.score for user in found for one in user}


def test_it_serves_what_the_operation_does(storage):
    assert Serving(storage).recommend(["ann", "dan"]) == recommend(storage, ["ann", "dan"])
    assert Serving(storage).recommend(None) == recommend(storage, None)


def test_who_is_withdrawn_is_unknown_at_once_and_others_are_not(storage):
    serving = Serving(storage)
    before = serving.recommend(["ann"])
    with serving.withdrawing([Request("bob")]):
        with pytest.raises(UnknownUser):
            serving.recommend(["bob"])
        assert [one.user_id for one in serving.recommend(None)] == [
            user for user in (one.user_id for one in recommend(storage, None)) if user != "bob"
        ]
        assert serving.recommend(["ann"]) == before


def test_who_is_withdrawn_may_get_what_is_popular(storage):
    serving = Serving(storage)
    with serving.withdrawing([Request("bob")]):
        assert len(serving.recommend(["bob"], k=2, unknown="popular")[0]) == 2


def test_if_nothing_was_forgotten_the_person_is_served_again(storage):
    serving = Serving(storage)
    before = serving.recommend(["bob"])
    with pytest.raises(KeyError), serving.withdrawing([Request("bob")]):
        raise KeyError
    assert serving.recommend(["bob"]) == before


def test_what_another_has_forgotten_is_followed(storage):
    serving = Serving(storage)
    serving.recommend(["bob"])
    forget(storage, [Request("bob")])
    with pytest.raises(UnknownUser):
        serving.recommend(["bob"])
    assert serving.recommend(None) == recommend(storage, None)


def test_who_has_asked_is_suppressed_from_every_reader_until_it_is_done(storage):
    submit(storage, Request("bob"))
    for serve in (lambda user: recommend(storage, [user]), lambda user: Serving(storage).recommend([user])):
        assert serve("ann")
        with pytest.raises(UnknownUser):
            serve("bob")


def test_ease_serves_without_what_someone_taught_before_that_is_settled(ease):
    serving = Serving(ease)
    before = scores(serving.recommend(["ann"]))
    with serving.withdrawing([Request("eve")]):
        provisional = scores(serving.recommend(["ann"]))
    forget(ease, [Request("eve")])
    settled = scores(recommend(ease, ["ann"]))
    assert provisional != before
    assert provisional.keys() == settled.keys()
    assert np.allclose([provisional[item] for item in settled], list(settled.values()), atol=1e-4)


def test_nobody_waits_for_what_someone_taught_to_be_taken_out(ease, monkeypatch):
    serving, answers = Serving(ease), []
    before = scores(serving.recommend(["ann"]))
    provisional = EASE.provisional

    def look_meanwhile(self, shared, change):
        answers.append(scores(serving.recommend(["ann"])))
        with pytest.raises(UnknownUser):
            serving.recommend(["eve"])
        return provisional(self, shared, change)

    monkeypatch.setattr(EASE, "provisional", look_meanwhile)
    with serving.withdrawing([Request("eve")]):
        monkeypatch.undo()
        answers.append(scores(serving.recommend(["ann"])))
    meanwhile, after = answers
    assert meanwhile.items() < before.items()  # an item that only they have is not offered any more
    assert after != meanwhile


def test_whoever_is_first_served_while_someone_is_being_forgotten_is_served_without_what_they_taught(ease):
    serving = Serving(ease)
    before = scores(Serving(ease).recommend(["ann"]))
    with serving.withdrawing([Request("eve")]):
        provisional = scores(serving.recommend(["ann"]))
    forget(ease, [Request("eve")])
    assert provisional != before
    assert provisional == scores(recommend(ease, ["ann"]))


def test_one_erasure_that_ends_does_not_bring_back_what_another_takes_out(ease):
    serving = Serving(ease)
    serving.recommend(["ann"])
    with serving.withdrawing([Request("eve")]):
        provisional = scores(serving.recommend(["ann"]))
        with serving.withdrawing([Request("dan")]):
            pass
        assert scores(serving.recommend(["ann"])) == provisional


def test_an_erasure_goes_on_where_what_someone_taught_can_not_be_taken_out(ease, monkeypatch):
    def fail(self, shared, change):
        raise MemoryError

    serving = Serving(ease)
    serving.recommend(["ann"])
    monkeypatch.setattr(EASE, "provisional", fail)
    with serving.withdrawing([Request("eve")]), pytest.raises(UnknownUser):
        serving.recommend(["eve"])


def test_another_thread_gets_nothing_while_the_library_forgets(table, monkeypatch):
    recommender = Recommender(model="nmf", groups=2, epochs=1).fit(table)
    recommender.recommend(["ann"])
    outcomes = []

    def look(*arguments, **options):
        thread = threading.Thread(
            target=lambda: outcomes.append(recommender.recommend("ann", 2, unknown="popular").num_rows)
        )
        thread.start()
        thread.join()
        with pytest.raises(UnknownUser):
            recommender.recommend(["ann"])
        return SimpleNamespace(notes=())

    monkeypatch.setattr("erasable.recommender.forget", look)
    recommender.forget(["ann"])
    assert outcomes == [2]


class TestSeveralAtOnce:
    def test_whose_second_request_is_refused_stays_withdrawn(self, storage):
        serving = Serving(storage)
        with serving.withdrawing([Request("bob")]):
            with pytest.raises(KeyError), serving.withdrawing([Request("bob")]):
                raise KeyError
            with pytest.raises(UnknownUser):
                serving.recommend(["bob"])
        assert serving.recommend(["bob"])

    def test_what_someone_taught_is_taken_once(self, ease, as_table):
        serving = Serving(ease)
        serving.recommend(["ann"])
        learn_more(ease, as_table({"zoe": {"a": 5, "d": 1}}))
        with serving.withdrawing([Request("eve")]), serving.withdrawing([Request("eve"), Request("zoe")]):
            provisional = scores(serving.recommend(["ann"]))
        forget(ease, [Request("eve"), Request("zoe")])
        settled = scores(recommend(ease, ["ann"]))
        assert np.allclose([provisional[item] for item in settled], list(settled.values()), atol=1e-4)

    def test_who_takes_a_request_back_teaches_again(self, ease):
        serving = Serving(ease)
        before = serving.recommend(["ann"])
        submit(ease, Request("eve"))
        assert serving.recommend(["ann"]) != before
        withdraw_submitted(ease)
        assert serving.recommend(["ann"]) == before

    def test_too_little_memory_for_a_correction_stops_neither_serving_nor_forgetting(self, ease, monkeypatch):
        def refuse(*arguments):
            raise Refused("no memory")

        serving = Serving(ease)
        before = serving.recommend(["ann"])
        monkeypatch.setattr("erasable.chain.Scoring.subtracting", refuse)
        with serving.withdrawing([Request("bob")]):
            assert serving.recommend(["ann"]) == before
            with pytest.raises(UnknownUser):
                serving.recommend(["bob"])
        assert serving.recommend(["bob"])

    def test_popular_items_are_counted_without_them(self, storage):
        serving = Serving(storage)
        popular = scores(serving.recommend(["nobody"], unknown="popular"))
        with serving.withdrawing([Request("eve")]):
            left = scores(serving.recommend(["nobody"], unknown="popular"))
        assert sum(left.values()) < sum(popular.values())


def test_only_what_scores_is_kept_in_memory(storage):
    with storage.reading() as session:
        state = session.state()
    assert state.scoring_links == state.chain  # rows come from every stage
    solved = replace(state.dataset, config=Config(model="nmf", groups=3, epochs=3, rows="solved"))
    links = tuple(Link(str(number), "", 0, 0.0) for number in range(3))
    assert [link.fingerprint for link in State(solved, links).scoring_links] == ["2"]
