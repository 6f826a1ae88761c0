"""What is live: answers from memory, each wholly from one version, and none for whoever is withheld."""

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from erasable.errors import Refused, SuppressionUnknown, UnknownUser, WorkspaceError, WrongUse
from erasable.operations import MemoryHome, Work, forget, recommend, withdraw_submitted
from erasable.operations.learn import learn_into
from erasable.operations.live import Live
from erasable.operations.prepare import NO_INPUTS
from erasable.requests import Request
from erasable.training import Config
from kit.asking import accept
from kit.fitting import fitting


def learned_in_memory(table, config):
    memory = MemoryHome()
    with memory.writing() as session:
        learn_into(session, table, config, NO_INPUTS, Work(1))
    return memory


@pytest.fixture
def ease(table):
    """A recommender whose model can be rid of someone at once."""
    return learned_in_memory(table, Config(model="ease", regularisation=2.0))


def ranked(home, user, k=10):
    """Return what the operation recommends, which reads the recommender anew."""
    return [(one.item_id, one.score, one.popular) for one in recommend(home, [user], k)[0]]


def scores(offers):
    return {item: score for item, score, _ in offers}


def served(live, user):
    try:
        return live.recommend(user, 10).ranked
    except UnknownUser:
        return None


def ask_to_be_erased(home, user):
    accept(home, Request(user))


def copy_into(home, other):
    """Make what another home holds current here."""
    with other.reading() as source, home.writing() as session:
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
    def test_it_serves_what_the_operation_does(self, home, ratings):
        live = Live(home)
        for user in ratings:
            assert live.recommend(user, 3).ranked == ranked(home, user, 3)

    @pytest.mark.parametrize("settings", [{"model": "als"}, {"model": "ease"}, {"strategy": "sisa", "groups": 2}])
    def test_it_does_so_for_every_way_to_score(self, table, settings):
        home = learned_in_memory(table, Config(**fitting(settings)))
        assert Live(home).recommend("ann", 10).ranked == ranked(home, "ann")

    def test_an_answer_says_which_version_it_comes_from(self, home):
        live = Live(home)
        assert (live.version, live.recommend("ann", 1).version) == (1, 1)
        forget(home, [Request("bob")])
        live.follow()
        assert (live.version, live.recommend("ann", 1).version) == (2, 2)

    def test_nobody_knows_an_unknown_user(self, home):
        live = Live(home)
        assert (live.knows("ann"), live.knows("zoe")) == (True, False)
        with pytest.raises(UnknownUser, match="'zoe'"):
            live.recommend("zoe", 1)

    def test_several_users_get_their_answers_and_unknown_ones_none(self, home):
        live = Live(home)
        live.withhold(["bob"])
        assert live.recommend_many(["dan", "zoe", "bob", "ann"], 2) == [
            live.recommend("dan", 2),
            None,
            None,
            live.recommend("ann", 2),
        ]

    def test_fewer_than_one_item_makes_no_sense(self, home):
        with pytest.raises(WrongUse, match="0 items"):
            Live(home).recommend("ann", 0)


class TestWithholding:
    def test_who_is_withheld_is_unknown_at_once_and_others_are_not(self, home):
        live = Live(home)
        before = served(live, "ann")
        live.withhold(["bob"])
        assert (served(live, "bob"), served(live, "ann")) == (None, before)
        assert live.knows("bob")

    def test_who_is_withheld_no_longer_is_served_once_it_was_followed(self, home):
        live = Live(home)
        before = served(live, "bob")
        live.withhold(["bob", "cat"])
        live.withhold(["cat"])
        assert (served(live, "bob"), served(live, "cat")) == (None, None)
        assert live.follow()
        assert (served(live, "bob"), served(live, "cat")) == (before, None)

    def test_who_was_forgotten_meanwhile_is_never_served_again(self, home):
        live = Live(home)
        live.withhold(["bob"])
        forget(home, [Request("bob")])
        live.withhold([])
        assert served(live, "bob") is None
        assert live.follow()
        assert served(live, "bob") is None
        assert not live.knows("bob")

    def test_who_is_withheld_while_another_version_is_read_stays_so(self, home, monkeypatch):
        live = Live(home)
        forget(home, [Request("cat")])
        reading = home.reading

        def read_and_be_asked():
            live.withhold(["bob"])
            assert served(live, "bob") is None
            return reading()

        monkeypatch.setattr(home, "reading", read_and_be_asked)
        assert live.follow()
        assert (live.version, served(live, "bob")) == (2, None)

    def test_who_is_let_go_of_while_another_version_is_read_waits_for_the_next_time(self, home, monkeypatch):
        live = Live(home)
        live.withhold(["bob"])
        forget(home, [Request("cat")])
        reading = home.reading

        def read_and_be_asked():
            live.withhold([])
            return reading()

        monkeypatch.setattr(home, "reading", read_and_be_asked)
        assert live.follow()
        assert served(live, "bob") is None
        assert live.follow()
        assert served(live, "bob") == ranked(home, "bob")


class TestFollowing:
    def test_nothing_is_read_while_nothing_has_changed(self, home, monkeypatch):
        live = Live(home)
        monkeypatch.setattr(home, "reading", None)
        assert not live.follow()

    def test_what_another_has_forgotten_is_followed(self, home):
        live = Live(home)
        forget(home, [Request("bob")])
        assert live.follow()
        assert served(live, "bob") is None
        assert served(live, "ann") == ranked(home, "ann")
        assert live.knowledge.users == 5
        assert not live.follow()

    def test_who_has_asked_is_withheld_from_the_beginning(self, home):
        ask_to_be_erased(home, "bob")
        live = Live(home)
        assert (served(live, "bob"), served(live, "ann")) == (None, ranked(home, "ann"))

    def test_who_asks_elsewhere_is_withheld_until_the_request_is_taken_back(self, home):
        live = Live(home)
        before = served(live, "bob")
        ask_to_be_erased(home, "bob")
        assert live.follow()
        assert served(live, "bob") is None
        withdraw_submitted(home)
        assert live.follow()
        assert served(live, "bob") == before

    def test_requests_alone_make_no_version_be_read_again(self, home):
        live = Live(home)
        knowledge = live.knowledge
        ask_to_be_erased(home, "bob")
        assert live.follow()
        assert live.knowledge is knowledge

    def test_while_what_is_current_can_not_be_read_nobody_is_served(self, home, monkeypatch):
        live = Live(home)
        forget(home, [Request("bob")])

        def refuse():
            raise WorkspaceError("no disk")

        with monkeypatch.context() as patched:
            patched.setattr(home, "reading", refuse)
            with pytest.raises(WorkspaceError):
                live.follow()
        assert live.version == 1
        live.withhold([])
        with pytest.raises(SuppressionUnknown):
            live.recommend("ann", 10)
        assert live.follow()
        assert (live.version, served(live, "ann")) == (2, ranked(home, "ann"))


class TestLessons:
    def test_what_someone_taught_is_gone_once_it_was_followed(self, ease):
        live = Live(ease)
        before = scores(served(live, "ann"))
        live.withhold(["eve"])
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
        live.withhold(["eve"])
        live.follow()
        live.withhold(["eve", "bob"])
        assert live.follow()
        assert not live.follow()
        provisional = scores(served(live, "ann"))
        forget(ease, [Request("eve"), Request("bob")])
        settled = scores(ranked(ease, "ann"))
        assert np.allclose([provisional[item] for item in settled], list(settled.values()), atol=1e-4)

    def test_who_takes_a_request_back_teaches_again(self, ease):
        live = Live(ease)
        before = served(live, "ann")
        live.withhold(["eve"])
        live.follow()
        live.withhold([])
        live.follow()
        assert served(live, "ann") == before

    def test_too_little_memory_for_that_stops_nothing_else(self, ease, monkeypatch):
        def refuse(*arguments):
            raise Refused("no memory")

        live = Live(ease)
        before = served(live, "ann")
        monkeypatch.setattr("erasable.training.Scoring.rid_of", refuse)
        live.withhold(["bob"])
        assert live.follow()
        assert (served(live, "ann"), served(live, "bob")) == (before, None)
        assert not live.follow()


class TestManyThreads:
    def test_every_answer_belongs_wholly_to_one_version(self, table):
        homes = [learned_in_memory(table, Config(model="als", regularisation=1.0, seed=seed)) for seed in (1, 2)]
        right = [{user: ranked(home, user) for user in ("ann", "bob")} for home in homes]
        assert right[0] != right[1]
        home = learned_in_memory(table, Config(model="als", regularisation=1.0, seed=2))
        copy_into(home, homes[0])
        live, seen = Live(home), set()

        def read():
            ann, bob = live.recommend_many(["ann", "bob"], 10)
            assert ann.version == bob.version
            assert {"ann": ann.ranked, "bob": bob.ranked} == right[ann.version % 2]
            seen.add(ann.version)

        with running(read, read, read):
            for number in range(1, 41):
                copy_into(home, homes[number % 2])
                assert live.follow()
        assert len(seen) > 2

    def test_nobody_is_served_once_withheld_whatever_is_swapped_in(self, home):
        live, withheld_in = Live(home), [0]

        def read():
            number = withheld_in[0]
            answer = served(live, "bob")
            # An answer counts if it was asked for and given in one and the same time of being withheld.
            assert answer is None or not number or withheld_in[0] != number

        with running(read, read, live.follow):
            for number in range(1, 31):
                live.withhold(["bob"])
                withheld_in[0] = number
                ask_to_be_erased(home, "cat")
                withdraw_submitted(home)
                withheld_in[0] = 0
                live.withhold([])
        live.follow()
        assert served(live, "bob")


class TestRowsThatAreKept:
    """Rows that are solved are kept while serving: of nobody who is withheld, and of no other version."""

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

    def test_whoever_is_withheld_is_dropped_at_once(self, live, ratings):
        live.recommend_many(list(ratings), 3)
        live.withhold(["bob"])
        assert self.kept(live, ratings) == set(ratings) - {"bob"}

    def test_a_row_that_is_solved_while_its_person_is_withheld_is_not_kept(self, live, ratings):
        scoring, place = live.served.scoring, live.knowledge.find("bob")
        live.withhold(["bob"])
        scoring.rows([place])  # as a thread does that was asked before
        assert "bob" not in scoring.cache

    def test_those_whose_request_the_recommender_holds_are_dropped_by_following(self, als, live, ratings):
        live.recommend_many(list(ratings), 3)
        ask_to_be_erased(als, "bob")
        live.follow()
        assert "bob" not in live.served.scoring.cache

    def test_nobody_who_is_withheld_is_kept_from_warming_up(self, als, ratings):
        ask_to_be_erased(als, "ann")
        assert "ann" not in Live(als).served.scoring.cache

    def test_whoever_takes_a_request_back_is_kept_again(self, live, ratings):
        live.withhold(["bob"])
        live.withhold([])
        live.follow()
        served(live, "bob")
        assert "bob" in live.served.scoring.cache

    def test_another_version_begins_with_none(self, als, live, ratings):
        live.recommend_many(list(ratings), 3)
        before = live.served.scoring.cache
        forget(als, [Request("bob")])
        live.follow()
        assert live.served.scoring.cache is not before
        assert self.kept(live, ratings) <= {live.knowledge.groups[0].users[0]}  # who is scored to warm up
        assert served(live, "ann") == ranked(als, "ann")

    def test_being_rid_of_someone_s_lessons_begins_with_none(self, als, ratings, monkeypatch):
        monkeypatch.setattr(
            "erasable.models.als.ALS.provisional",
            lambda model, shared, change: {name: array * 0.5 for name, array in shared.items()},
            raising=False,
        )
        live = Live(als)
        live.recommend_many(list(ratings), 3)
        before = served(live, "ann")
        live.withhold(["bob"])
        live.follow()
        assert self.kept(live, ratings) <= {live.knowledge.groups[0].users[0]}
        assert served(live, "ann") != before


class TestWordFromTheQueue:
    def test_nobody_is_served_without_word_for_too_long(self, home, monkeypatch):
        live, clock = Live(home), [100.0]
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        live.serve_only_if_told(3)
        clock[0] += 2.9
        assert live.recommend("ann", 1).ranked
        clock[0] += 0.2
        with pytest.raises(SuppressionUnknown):
            live.recommend("ann", 1)
        live.withhold([])
        assert live.recommend("ann", 1).ranked

    def test_who_does_without_a_queue_that_is_watched_is_served_whenever_that_is(self, home, monkeypatch):
        live = Live(home)
        monkeypatch.setattr(time, "monotonic", lambda: 1e9)
        assert live.recommend("ann", 1).ranked

    def test_a_disk_that_tells_late_of_a_new_version_serves_nobody_who_was_forgotten(self, home, monkeypatch):
        live, late = Live(home), home.mark()
        live.withhold(["ann"])
        live.follow()
        forget(home, [Request("ann")])
        monkeypatch.setattr(home, "mark", lambda: late)
        live.withhold([])
        live.follow()
        assert served(live, "ann") is None
        assert live.version == 2
