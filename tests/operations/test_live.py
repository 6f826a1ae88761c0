"""What is live: answers from memory, each wholly from one version, and none for whoever is suppressed."""

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from erasable.chain import Config
from erasable.errors import Refused, SuppressionUnknown, UnknownUser, WorkspaceError, WrongUse
from erasable.operations import MemoryStorage, Work, forget, recommend, withdraw_submitted
from erasable.operations.learn import learn_into
from erasable.operations.live import Live
from erasable.operations.prepare import NO_INPUTS
from erasable.requests import Request
from kit.asking import accept
from kit.fitting import fitting


def learned_in_memory(table, config):
    memory = MemoryStorage()
    with memory.writing() as session:
        learn_into(session, table, config, NO_INPUTS, Work(1))
    return memory


@pytest.fixture
def ease(table):
    """A recommender whose model can be rid of someone at once."""
    return learned_in_memory(table, Config(model="ease", regularisation=2.0))


def ranked(storage, user, k=10):
    """Return what the operation recommends, which reads the recommender anew."""
    return [(one.item_id, one.score, one.popular) for one in recommend(storage, [user], k)[0]]


def scores(offers):
    return {item: score for item, score, _ in offers}


def served(live, user):
    try:
        return live.recommend(user, 10).ranked
    except UnknownUser:
        return None


def ask_to_be_erased(storage, user):
    accept(storage, Request(user))


def copy_into(storage, other):
    """Make what another storage holds current here."""
    with other.reading() as source, storage.writing() as session:
        for link in source.state().chain:
            session.checkpoints.put(source.checkpoints.get(link.fingerprint))
        session.commit(source.state())


@contextmanager
def running(*tasks):
    """Run each task again and again in a thread of its own until the block ends; what one raises fails the test."""
    stop, raised = threading.Event(), []

    def repeat(task):
        try:
            while not stop.wait(0.0002):
                task()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=repeat, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not raised


class TestAnswers:
    def test_it_serves_what_the_operation_does(self, storage, ratings):
        live = Live(storage)
        for user in ratings:
            assert live.recommend(user, 3).ranked == ranked(storage, user, 3)

    @pytest.mark.parametrize("settings", [{"model": "als"}, {"model": "ease"}, {"strategy": "sisa", "groups": 2}])
    def test_it_does_so_for_every_way_to_score(self, table, settings):
        storage = learned_in_memory(table, Config(**fitting(settings)))
        assert Live(storage).recommend("ann", 10).ranked == ranked(storage, "ann")

    def test_an_answer_says_which_version_it_comes_from(self, storage):
        live = Live(storage)
        assert (live.version, live.recommend("ann", 1).version) == (1, 1)
        forget(storage, [Request("bob")])
        live.follow()
        assert (live.version, live.recommend("ann", 1).version) == (2, 2)

    def test_nobody_knows_an_unknown_user(self, storage):
        live = Live(storage)
        assert (live.knows("ann"), live.knows("zoe")) == (True, False)
        with pytest.raises(UnknownUser, match="'zoe'"):
            live.recommend("zoe", 1)

    def test_several_users_get_their_answers_and_unknown_ones_none(self, storage):
        live = Live(storage)
        live.suppress(["bob"])
        assert live.recommend_many(["dan", "zoe", "bob", "ann"], 2) == [
            live.recommend("dan", 2),
            None,
            None,
            live.recommend("ann", 2),
        ]

    def test_fewer_than_one_item_makes_no_sense(self, storage):
        with pytest.raises(WrongUse, match="0 items"):
            Live(storage).recommend("ann", 0)


class TestWithholding:
    def test_who_is_suppressed_is_unknown_at_once_and_others_are_not(self, storage):
        live = Live(storage)
        before = served(live, "ann")
        live.suppress(["bob"])
        assert (served(live, "bob"), served(live, "ann")) == (None, before)
        assert live.knows("bob")

    def test_who_is_suppressed_no_longer_is_served_once_it_was_followed(self, storage):
        live = Live(storage)
        before = served(live, "bob")
        live.suppress(["bob", "cat"])
        live.suppress(["cat"])
        assert (served(live, "bob"), served(live, "cat")) == (None, None)
        assert live.follow()
        assert (served(live, "bob"), served(live, "cat")) == (before, None)

    def test_who_was_forgotten_meanwhile_is_never_served_again(self, storage):
        live = Live(storage)
        live.suppress(["bob"])
        forget(storage, [Request("bob")])
        live.suppress([])
        assert served(live, "bob") is None
        assert live.follow()
        assert served(live, "bob") is None
        assert not live.knows("bob")

    def test_who_is_suppressed_while_another_version_is_read_stays_so(self, storage, monkeypatch):
        live = Live(storage)
        forget(storage, [Request("cat")])
        reading = storage.reading

        def read_and_be_asked():
            live.suppress(["bob"])
            assert served(live, "bob") is None
            return reading()

        monkeypatch.setattr(storage, "reading", read_and_be_asked)
        assert live.follow()
        assert (live.version, served(live, "bob")) == (2, None)

    def test_who_is_let_go_of_while_another_version_is_read_waits_for_the_next_time(self, storage, monkeypatch):
        live = Live(storage)
        live.suppress(["bob"])
        forget(storage, [Request("cat")])
        reading = storage.reading

        def read_and_be_asked():
            live.suppress([])
            return reading()

        monkeypatch.setattr(storage, "reading", read_and_be_asked)
        assert live.follow()
        assert served(live, "bob") is None
        assert live.follow()
        assert served(live, "bob") == ranked(storage, "bob")


class TestFollowing:
    def test_nothing_is_read_while_nothing_has_changed(self, storage, monkeypatch):
        live = Live(storage)
        monkeypatch.setattr(storage, "reading", None)
        assert not live.follow()

    def test_what_another_has_forgotten_is_followed(self, storage):
        live = Live(storage)
        forget(storage, [Request("bob")])
        assert live.follow()
        assert served(live, "bob") is None
        assert served(live, "ann") == ranked(storage, "ann")
        assert live.dataset.users == 5
        assert not live.follow()

    def test_who_has_asked_is_suppressed_from_the_beginning(self, storage):
        ask_to_be_erased(storage, "bob")
        live = Live(storage)
        assert (served(live, "bob"), served(live, "ann")) == (None, ranked(storage, "ann"))

    def test_who_asks_elsewhere_is_suppressed_until_the_request_is_taken_back(self, storage):
        live = Live(storage)
        before = served(live, "bob")
        ask_to_be_erased(storage, "bob")
        assert live.follow()
        assert served(live, "bob") is None
        withdraw_submitted(storage)
        assert live.follow()
        assert served(live, "bob") == before

    def test_requests_alone_make_no_version_be_read_again(self, storage):
        live = Live(storage)
        dataset = live.dataset
        ask_to_be_erased(storage, "bob")
        assert live.follow()
        assert live.dataset is dataset

    def test_while_what_is_current_can_not_be_read_nobody_is_served(self, storage, monkeypatch):
        live = Live(storage)
        forget(storage, [Request("bob")])

        def refuse():
            raise WorkspaceError("no disk")

        with monkeypatch.context() as patched:
            patched.setattr(storage, "reading", refuse)
            with pytest.raises(WorkspaceError):
                live.follow()
        assert live.version == 1
        live.suppress([])
        with pytest.raises(SuppressionUnknown):
            live.recommend("ann", 10)
        assert live.follow()
        assert (live.version, served(live, "ann")) == (2, ranked(storage, "ann"))


class TestLessons:
    def test_what_someone_taught_is_gone_once_it_was_followed(self, ease):
        live = Live(ease)
        before = scores(served(live, "ann"))
        live.suppress(["eve"])
        assert live.follow()
        provisional = scores(served(live, "ann"))
        forget(ease, [Request("eve")])
        settled = scores(ranked(ease, "ann"))
        assert provisional != before
        assert np.allclose([provisional[item] for item in settled], list(settled.values()), atol=1e-4)
        assert live.follow()
        assert served(live, "ann") == ranked(ease, "ann")

    def test_it_is_taken_out_once(self, ease):
        live = Live(ease)
        live.suppress(["eve"])
        live.follow()
        live.suppress(["eve", "bob"])
        assert live.follow()
        assert not live.follow()
        provisional = scores(served(live, "ann"))
        forget(ease, [Request("eve"), Request("bob")])
        settled = scores(ranked(ease, "ann"))
        assert np.allclose([provisional[item] for item in settled], list(settled.values()), atol=1e-4)

    def test_who_takes_a_request_back_teaches_again(self, ease):
        live = Live(ease)
        before = served(live, "ann")
        live.suppress(["eve"])
        live.follow()
        live.suppress([])
        live.follow()
        assert served(live, "ann") == before

    def test_too_little_memory_for_that_stops_nothing_else(self, ease, monkeypatch):
        def refuse(*arguments):
            raise Refused("no memory")

        live = Live(ease)
        before = served(live, "ann")
        monkeypatch.setattr("erasable.chain.Scoring.subtracting", refuse)
        live.suppress(["bob"])
        assert live.follow()
        assert (served(live, "ann"), served(live, "bob")) == (before, None)
        assert not live.follow()


class TestManyThreads:
    def test_every_answer_belongs_wholly_to_one_version(self, table):
        homes = [learned_in_memory(table, Config(model="als", regularisation=1.0, seed=seed)) for seed in (1, 2)]
        right = [{user: ranked(storage, user) for user in ("ann", "bob")} for storage in homes]
        assert right[0] != right[1]
        storage = learned_in_memory(table, Config(model="als", regularisation=1.0, seed=2))
        copy_into(storage, homes[0])
        live, seen = Live(storage), set()

        def read():
            ann, bob = live.recommend_many(["ann", "bob"], 10)
            assert ann.version == bob.version
            assert {"ann": ann.ranked, "bob": bob.ranked} == right[ann.version % 2]
            seen.add(ann.version)

        with running(read, read, read):
            for number in range(1, 41):
                copy_into(storage, homes[number % 2])
                assert live.follow()
        assert len(seen) > 2

    def test_nobody_is_served_once_suppressed_whatever_is_swapped_in(self, storage):
        live, suppressed_in = Live(storage), [0]

        def read():
            number = suppressed_in[0]
            answer = served(live, "bob")
            # An answer counts if it was asked for and given in one and the same time of being suppressed.
            assert answer is None or not number or suppressed_in[0] != number

        with running(read, read, live.follow):
            for number in range(1, 31):
                live.suppress(["bob"])
                suppressed_in[0] = number
                ask_to_be_erased(storage, "cat")
                withdraw_submitted(storage)
                suppressed_in[0] = 0
                live.suppress([])
        live.follow()
        assert served(live, "bob")


class TestRowsThatAreKept:
    """Rows that are solved are kept while serving: of nobody who is suppressed, and of no other version."""

    @pytest.fixture
    def als(self, table):
        return learned_in_memory(table, Config(model="als", factors=4, regularisation=0.5))

    @pytest.fixture
    def live(self, als):
        return Live(als)

    def kept(self, live, ratings):
        return {user for user in ratings if user in live.served.scoring.cache}

    def test_whoever_was_served_is_kept_and_served_the_same_again(self, live, ratings):
        first = {user: served(live, user) for user in ratings}
        assert self.kept(live, ratings) == set(ratings)
        assert {user: served(live, user) for user in ratings} == first

    def test_a_kept_row_is_what_is_served(self, live):
        own = live.served.scoring.cache
        before = served(live, "bob")
        own.put("bob", {name: -array for name, array in own.get("bob").items()})
        assert served(live, "bob") != before

    def test_whoever_is_suppressed_is_dropped_at_once(self, live, ratings):
        live.recommend_many(list(ratings), 3)
        live.suppress(["bob"])
        assert self.kept(live, ratings) == set(ratings) - {"bob"}

    def test_a_row_that_is_solved_while_its_person_is_suppressed_is_not_kept(self, live, ratings):
        scoring, place = live.served.scoring, live.dataset.find("bob")
        live.suppress(["bob"])
        scoring.rows([place])  # as a thread does that was asked before
        assert "bob" not in scoring.cache

    def test_those_whose_request_the_recommender_holds_are_dropped_by_following(self, als, live, ratings):
        live.recommend_many(list(ratings), 3)
        ask_to_be_erased(als, "bob")
        live.follow()
        assert "bob" not in live.served.scoring.cache

    def test_nobody_who_is_suppressed_is_kept_from_warming_up(self, als, ratings):
        ask_to_be_erased(als, "ann")
        assert "ann" not in Live(als).served.scoring.cache

    def test_whoever_takes_a_request_back_is_kept_again(self, live, ratings):
        live.suppress(["bob"])
        live.suppress([])
        live.follow()
        served(live, "bob")
        assert "bob" in live.served.scoring.cache

    def test_another_version_begins_with_none(self, als, live, ratings):
        live.recommend_many(list(ratings), 3)
        before = live.served.scoring.cache
        forget(als, [Request("bob")])
        live.follow()
        assert live.served.scoring.cache is not before
        assert self.kept(live, ratings) <= {live.dataset.groups[0].users[0]}  # who is scored to warm up
        assert served(live, "ann") == ranked(als, "ann")

    def test_subtracting_someone_s_lessons_begins_with_none(self, als, ratings, monkeypatch):
        monkeypatch.setattr(
            "erasable.models._als.ALS.provisional",
            lambda model, shared, change: {name: array * 0.5 for name, array in shared.items()},
            raising=False,
        )
        live = Live(als)
        live.recommend_many(list(ratings), 3)
        before = served(live, "ann")
        live.suppress(["bob"])
        live.follow()
        assert self.kept(live, ratings) <= {live.dataset.groups[0].users[0]}
        assert served(live, "ann") != before


class TestWordFromTheQueue:
    def test_nobody_is_served_without_word_for_too_long(self, storage, monkeypatch):
        live, clock = Live(storage), [100.0]
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        live.serve_only_if_told(3)
        clock[0] += 2.9
        assert live.recommend("ann", 1).ranked
        clock[0] += 0.2
        with pytest.raises(SuppressionUnknown):
            live.recommend("ann", 1)
        live.suppress([])
        assert live.recommend("ann", 1).ranked

    def test_who_does_without_a_queue_that_is_watched_is_served_whenever_that_is(self, storage, monkeypatch):
        live = Live(storage)
        monkeypatch.setattr(time, "monotonic", lambda: 1e9)
        assert live.recommend("ann", 1).ranked

    def test_a_disk_that_tells_late_of_a_new_version_serves_nobody_who_was_forgotten(self, storage, monkeypatch):
        live, late = Live(storage), storage.mark()
        live.suppress(["ann"])
        live.follow()
        forget(storage, [Request("ann")])
        monkeypatch.setattr(storage, "mark", lambda: late)
        live.suppress([])
        live.follow()
        assert served(live, "ann") is None
        assert live.version == 2
