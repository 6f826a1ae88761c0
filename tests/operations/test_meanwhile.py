"""Meanwhile: who asks for some items is served from a row without them where rows are solved, else not at all."""

import numpy as np
import pytest

from erasable import Recommender
from erasable.chain import Config, Dataset, Scoring
from erasable.errors import Suppressed, UnknownUser
from erasable.models import calls
from erasable.operations import DiskStorage, MemoryStorage, Work, forget, learn, plan, recommend, show, status
from erasable.operations import live as live_module
from erasable.operations.learn import learn_into
from erasable.operations.live import Live
from erasable.operations.people import NOT_SERVED, SERVED_WITHOUT, meanwhile
from erasable.operations.prepare import NO_INPUTS
from erasable.recommender._serving import Serving
from erasable.requests import Request
from erasable.requests.request import Asked
from kit.asking import accept, erase_only, submit
from kit.fitting import fitting

SOLVED = {
    "als": {"model": "als", "factors": 4, "regularisation": 0.1},
    "ease": {"model": "ease", "regularisation": 2.0},
    "nmf, rows solved": {"model": "nmf", "rows": "solved", "epochs": 2, "groups": 2},
    "als, held out": {"model": "als", "factors": 4, "regularisation": 0.1, "holdout": 0.4, "seed": 3},
}
TRAINED = {"nmf": {"model": "nmf", "epochs": 2, "groups": 2}, "dmf": {"model": "dmf", "epochs": 2, "groups": 2}}
EVE, GONE = "eve", ("a", "e")


def learned_in_memory(table, settings):
    storage = MemoryStorage()
    with storage.writing() as session:
        learn_into(session, table, Config(**fitting(settings)), NO_INPUTS, Work(1))
    return storage


@pytest.fixture(params=SOLVED)
def solved(request, table):
    return learned_in_memory(table, SOLVED[request.param])


def items_of(offers):
    return [tuple(offer)[:2] for offer in offers]


def by_operation(storage, user=EVE):
    return [(one.item_id, one.score) for one in recommend(storage, [user], 10)[0]]


def represented_without(storage, items=GONE, user=EVE):
    """Return what is to be served: the scores of the row of exactly what is left, under the shared parameters now."""
    with storage.reading() as session:
        state = session.state()
        after = state.dataset.without([], [(user, item) for item in items])
        left = after.groups[after.find(user).group].of_users([user]).with_items(state.dataset.items)
        scoring = Scoring(state, session.checkpoints)
        scores = scoring._score(len(state.chain) - 1, scoring_row(scoring, left, len(state.chain) - 1), left.item_index)
        had = after.items_of(user)
        found = [(state.dataset.items[place], float(scores[place])) for place in np.argsort(-scores, kind="stable")]
        return [pair for pair in found if pair[0] not in had and np.isfinite(pair[1])]


def scoring_row(scoring, left, judge):
    return {name: array[0] for name, array in scoring.represent(left, judge).items()}


class TestWhereRowsAreSolved:
    def test_the_answer_is_that_of_the_row_without_the_items(self, solved):
        before = by_operation(solved)
        submit(solved, Request(EVE, GONE))
        expected = represented_without(solved)
        assert dict(by_operation(solved)) == dict(expected)
        assert by_operation(solved) != before  # with the items the answer is another

    def test_the_row_is_byte_for_byte_what_represent_gives(self, table, monkeypatch):
        storage = learned_in_memory(table, SOLVED["als"])
        submit(storage, Request(EVE, GONE))
        with storage.reading() as session:
            state = session.state()
            left = state.dataset.data_of([EVE]).without(pairs=[(EVE, item) for item in GONE])
            (wanted,) = Scoring(state, session.checkpoints).represent(left, 0).values()
            (whole,) = Scoring(state, session.checkpoints).represent(state.dataset.data_of([EVE]), 0).values()
        used, score = [], calls.scored

        def scored(model, prepared, row, *rest):
            used.extend(row.values())
            return score(model, prepared, row, *rest)

        monkeypatch.setattr(calls, "scored", scored)
        recommend(storage, [EVE], 3)
        assert [row.tobytes() for row in used] == [wanted[0].tobytes()]
        assert wanted[0].tobytes() != whole[0].tobytes()

    def test_the_items_are_offered_again_as_they_are_once_they_are_erased(self, solved):
        assert not {"a", "e"} & dict(by_operation(solved)).keys()
        submit(solved, Request(EVE, GONE))
        assert {"a", "e"} <= dict(by_operation(solved)).keys()

    def test_library_and_service_serve_the_same_as_the_command(self, solved):
        live, library = Live(solved), Serving(solved)
        library.recommend([EVE])
        submit(solved, Request(EVE, GONE))
        live.suppress_asked(Asked.of([Request(EVE, GONE)]))
        expected = by_operation(solved)
        assert items_of(live.recommend(EVE, 10).ranked) == expected
        if "ease" not in str(type(live.served.scoring._model)).lower():  # which takes out at once what was taught
            (found,) = library.recommend([EVE], 10)
            assert [(one.item_id, one.score) for one in found] == expected
            live.follow()
            assert items_of(live.recommend(EVE, 10).ranked) == expected

    def test_everyone_is_served_at_once_like_one_by_one(self, solved):
        submit(solved, Request(EVE, GONE), Request("bob"))
        found = {one.user_id: [(each.item_id, each.score) for each in one] for one in recommend(solved, None, 10)}
        assert sorted(found) == ["ann", "cat", "dan", "eve", "fay"]
        assert found[EVE] == by_operation(solved)
        assert found["ann"] == by_operation(solved, "ann")

    def test_no_row_of_theirs_is_kept(self, table):
        live = Live(learned_in_memory(table, SOLVED["als"]))
        live.recommend(EVE, 3)
        assert EVE in live.served.scoring.cache
        live.suppress_asked(Asked.of([Request(EVE, GONE)]))
        live.recommend(EVE, 3)
        assert EVE not in live.served.scoring.cache

    def test_who_names_everything_that_they_have_is_not_served(self, solved):
        submit(solved, Request("ann", ("a", "b", "c")))
        with pytest.raises(Suppressed):
            recommend(solved, ["ann"])

    def test_a_second_request_for_everything_suppresses_them(self, solved):
        live = Live(solved)
        submit(solved, Request(EVE, GONE))
        live.suppress_asked(Asked.of([Request(EVE, GONE)]))
        assert live.recommend(EVE, 3)
        submit(solved, Request(EVE))
        live.suppress_also(Asked.of([Request(EVE)]))
        with pytest.raises(UnknownUser):
            live.recommend(EVE, 3)
        with pytest.raises(Suppressed):
            recommend(solved, [EVE])

    def test_further_items_are_left_out_too(self, solved):
        submit(solved, Request(EVE, ("a",)))
        submit(solved, Request(EVE, ("e",)))
        assert dict(by_operation(solved)) == dict(represented_without(solved))

    def test_who_takes_it_back_is_served_as_before(self, solved):
        live = Live(solved)
        before = live.recommend(EVE, 10)
        live.suppress_asked(Asked.of([Request(EVE, GONE)]))
        live.follow()
        assert live.recommend(EVE, 10) != before
        live.suppress_asked(Asked())
        live.follow()
        assert live.recommend(EVE, 10) == before

    def test_what_only_they_had_is_gone_for_everyone(self, solved):
        live = Live(solved)
        live.suppress_asked(Asked.of([Request(EVE, ("f",))]))
        for _ in range(2):
            for user in ("ann", EVE):
                assert "f" not in dict(items_of(live.recommend(user, 10).ranked))
            live.follow()
        submit(solved, Request(EVE, ("f",)))
        assert "f" not in dict(by_operation(solved, "ann"))

    def test_it_is_counted_as_served(self, solved):
        submit(solved, Request(EVE, GONE), Request("bob"))
        assert (status(solved)["suppressed"], show(solved, EVE).suppressed, show(solved, "bob").suppressed) == (
            1,
            False,
            True,
        )

    def test_it_is_said(self, solved):
        with solved.reading() as session:
            dataset = session.state().dataset
        assert meanwhile(dataset, Request(EVE, GONE)) == SERVED_WITHOUT
        assert meanwhile(dataset, Request(EVE)) == meanwhile(dataset, Request("zoe", ("a",))) == NOT_SERVED
        assert plan(solved, [Request(EVE, GONE), Request("bob")]).served_meanwhile == 1

    def test_what_an_earlier_release_accepted_suppresses_as_it_said(self, solved):
        accept(solved, Request(EVE, GONE))
        with pytest.raises(Suppressed):
            recommend(solved, [EVE])


class TestWhatTheyTaught:
    def test_it_is_taken_out_at_once_where_the_model_can_and_the_rest_goes_on_teaching(self, table):
        storage = learned_in_memory(table, SOLVED["ease"])
        live = Live(storage)
        live.suppress_asked(Asked.of([Request(EVE, GONE)]))
        live.follow()
        meanwhile_served = {user: dict(items_of(live.recommend(user, 10).ranked)) for user in ("ann", EVE)}
        forget(storage, [Request(EVE, GONE)], work=Work(1))
        for user, offers in meanwhile_served.items():
            assert offers == pytest.approx(dict(by_operation(storage, user)), abs=1e-5)

    def test_it_counts_until_it_is_erased_where_a_server_would_have_to_read_too_much(self, table, monkeypatch):
        storage = learned_in_memory(table, SOLVED["ease"])
        with_eve = [(item, score) for item, score in by_operation(storage, "ann") if item != "f"]  # only Eve has that
        monkeypatch.setattr(live_module, "_MOST_ROWS_READ", len(table) - 1)
        monkeypatch.setattr(Dataset, "lessons_without", lambda *given: pytest.fail("everyone's rows are read"))
        live = Live(storage)
        live.suppress_asked(Asked.of([Request(EVE)]))
        live.follow()
        assert live.suppresses(EVE)
        assert items_of(live.recommend("ann", 10).ranked) == with_eve

    def test_who_asks_for_more_later_is_taken_out_whole(self, table):
        storage = learned_in_memory(table, SOLVED["ease"])
        live, other = Live(storage), Live(storage)
        for items in (("a",), GONE):
            live.suppress_asked(Asked.of([Request(EVE, items)]))
            live.follow()
        other.suppress_asked(Asked.of([Request(EVE, GONE)]))
        other.follow()
        assert live.recommend("ann", 10) == other.recommend("ann", 10)


@pytest.mark.parametrize("settings", TRAINED.values(), ids=TRAINED)
class TestWhereRowsAreTrained:
    def test_they_are_suppressed(self, table, settings):
        storage = learned_in_memory(table, settings)
        live = Live(storage)
        submit(storage, Request(EVE, GONE))
        live.suppress_asked(Asked.of([Request(EVE, GONE)]))
        with pytest.raises(Suppressed):
            recommend(storage, [EVE])
        with pytest.raises(UnknownUser):
            live.recommend(EVE, 3)
        assert live.not_served(Asked.of([Request(EVE, GONE)])) == {EVE}

    def test_it_is_said(self, table, settings):
        storage = learned_in_memory(table, settings)
        assert plan(storage, [Request(EVE, GONE)]).served_meanwhile == 0
        assert status(storage)["suppressed"] == 0
        submit(storage, Request(EVE, GONE))
        assert status(storage)["suppressed"] == 1


class TestOnDisk:
    @pytest.fixture
    def storage(self, table, tmp_path):
        learn(table, tmp_path / "shop", Config(**fitting(SOLVED["als"])))
        return DiskStorage(tmp_path / "shop")

    def test_another_process_and_the_library_serve_them_without_the_items(self, storage):
        library = Recommender.load(storage.path)
        library.recommend([EVE])
        submit(storage, Request(EVE, GONE))
        expected = by_operation(storage)
        assert dict(expected) == dict(represented_without(storage))
        found = library.recommend([EVE], k=10)
        assert list(zip(found["item_id"].to_pylist(), found["score"].to_pylist(), strict=True)) == expected

    def test_until_the_certificate_and_after_it_they_are_served_from_the_new_version(self, storage):
        erase_only(storage, Request(EVE, GONE))
        live = Live(storage)
        between = by_operation(storage)
        assert items_of(live.recommend(EVE, 10).ranked) == between
        assert forget(storage, []).certificates
        assert by_operation(storage) == between

    def test_a_copy_is_refused_while_they_wait(self, storage, tmp_path):
        submit(storage, Request(EVE, GONE))
        with pytest.raises(Exception, match="not finished"):
            Recommender.load(storage.path).save(tmp_path / "copy")
