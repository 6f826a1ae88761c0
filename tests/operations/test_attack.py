"""The membership probe on a small recommender: it accuses where something is left, and only there."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from erasable import chain
from erasable.chain import Checkpoint, Config, State
from erasable.data import SyntheticSettings, synthesise
from erasable.errors import DataRefused, Refused, UnknownUser, WrongUse
from erasable.models import Parameters
from erasable.operations import DiskStorage, MemoryStorage, Work, forget, learn
from erasable.operations.attack import attack, attack_erased
from erasable.operations.learn import learn_into
from erasable.operations.prepare import NO_INPUTS
from erasable.requests import Request
from kit.choosing import cases
from kit.fitting import fitting

SETTINGS = {"groups": 2, "epochs": 20, "batch": 64, "learning_rate": 0.005}
PEOPLE, SEEDS = 20, 5
ERASED = [f"u{number:04d}" for number in range(3, 100, 6)]


def made_up(users: int = 100) -> pa.Table:
    rows = synthesise(SyntheticSettings(users=users, items=100, groups=4, per_user=20, ratings=True)).interactions
    ids, items = rows.users.texts(), rows.items.texts()
    return pa.table(
        {
            "user_id": [ids[user] for user in rows.user_index],
            "item_id": [items[item] for item in rows.item_index],
            "rating": rows.rating,
        }
    )


def storage_with(table: pa.Table, **settings: object) -> MemoryStorage:
    storage = MemoryStorage()
    with storage.writing() as session:
        learn_into(session, table, Config(**fitting({**SETTINGS, **settings})), NO_INPUTS, Work(1))
    return storage


@pytest.fixture(scope="module")
def everyone() -> pa.Table:
    return made_up()


@pytest.fixture(scope="module")
def shop(everyone) -> MemoryStorage:
    """A recommender that tells people apart; to be read only."""
    return storage_with(everyone)


@pytest.fixture(scope="module")
def probe(shop):
    return attack(shop, PEOPLE, SEEDS, Work(1))


def drop_rows_only(state, after, store, effort) -> State:
    """Forget wrongly: the people's rows are gone, the shared parameters are those that they shaped."""
    for link, old, new in zip(state.chain, state.dataset.groups, after.groups, strict=True):
        checkpoint = store.get(link.fingerprint)
        places = old.users.positions(new.users.texts())
        rows = {name: array[places] for name, array in checkpoint.parameters.rows.items()}
        store.put(Checkpoint(link.fingerprint, link.parent, Parameters(checkpoint.parameters.shared, rows)))
    return State(after, state.chain)


def retrain_last_stage_only(state, after, store, effort) -> State:
    """Forget wrongly: roll back to the last group's checkpoint, though the first group has erased people too."""
    groups = (state.dataset.groups[0], *after.groups[1:])
    return forget_rightly(state, after.with_groups(groups=groups), store, effort)


def do_nothing(state, after, store, effort) -> State:
    """Forget wrongly: not at all."""
    return state


forget_rightly = chain.forget
WRONGLY = {wrong.__name__: wrong for wrong in (drop_rows_only, retrain_last_stage_only, do_nothing)}
OTHER_WAYS = (
    {"strategy": "sisa", "aggregate": "own"},
    {"policy": "regroup", "grouping": "bkm"},
    {"model": "dmf", "holdout": 0.2},
    {"min_interactions": 3, "holdout": 0.3},
)


class TestPretended:
    def test_forgetting_as_a_workspace_does_is_not_accused(self, probe):
        assert probe.verdict == "forgotten"
        assert (probe.people, probe.others, probe.seeds, probe.rounds, probe.pretended) == (20, 20, 5, 1, True)
        assert {one.verdict for one in probe.findings} <= {"forgotten", "worthless here"}

    def test_every_attack_succeeds_before_forgetting(self, probe):
        for one in probe.findings:
            assert one.before.low > one.never.mean
            assert one.before.mean > 0.85

    @pytest.mark.parametrize("wrong", cases(WRONGLY, ["retrain_last_stage_only"]))
    def test_forgetting_wrongly_is_found_out(self, shop, monkeypatch, wrong):
        monkeypatch.setattr(chain, "forget", wrong)
        found = attack(shop, PEOPLE, SEEDS, Work(1))
        assert (found.verdict, found.rounds) == ("remembers", 2)

    @pytest.mark.full
    def test_nobody_is_accused_by_one_round_of_seeds(self, shop, monkeypatch):
        calls = []

        def wrong_at_first(state, *others):
            calls.append(state)
            return (do_nothing if len(calls) <= SEEDS else forget_rightly)(state, *others)

        monkeypatch.setattr(chain, "forget", wrong_at_first)
        found = attack(shop, PEOPLE, SEEDS, Work(1))
        assert (found.verdict, found.rounds, len(calls)) == ("forgotten", 2, 2 * SEEDS)
        assert len({state.dataset.config.seed for state in calls}) == 2 * SEEDS

    @pytest.mark.full
    def test_rows_that_are_gone_do_not_hide_what_shared_parameters_hold(self, shop, monkeypatch):
        monkeypatch.setattr(chain, "forget", drop_rows_only)
        found = attack(shop, PEOPLE, SEEDS, Work(1)).findings
        by_shared = [one for one in found if one.view == "shared parameters"]
        assert {one.verdict for one in by_shared} == {"remembers"}
        # Shared parameters are as before, so an attack on them does exactly as well.
        assert [one.forgotten for one in by_shared] == [one.before for one in by_shared]

    def test_a_model_that_has_learned_nothing_makes_the_probe_worthless(self, everyone):
        lazy = storage_with(everyone, epochs=1, groups=1, learning_rate=1e-6)
        assert attack(lazy, PEOPLE, 3, Work(1)).verdict == "worthless here"

    @pytest.mark.full
    @pytest.mark.parametrize(
        "settings",
        cases({"-".join(map(str, one.values())): one for one in OTHER_WAYS}, ["sisa-own", "dmf-0.2"]),
    )
    def test_other_ways_to_learn_are_not_accused(self, everyone, settings):
        assert attack(storage_with(everyone, **settings), PEOPLE, 4, Work(1)).verdict != "remembers"

    @pytest.mark.full
    def test_repeats_to_the_digit_on_any_number_of_threads(self, shop, probe):
        again = attack(shop, PEOPLE, SEEDS, Work(2))
        assert replace(again, seconds=0.0) == replace(probe, seconds=0.0)

    @pytest.mark.full
    def test_nothing_is_written(self, tmp_path):
        learn(made_up(40), tmp_path / "shop", Config(model="nmf", groups=2, epochs=2))
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        attack(DiskStorage(tmp_path / "shop"), seeds=3, work=Work(1))
        assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    @pytest.mark.full
    def test_a_twentieth_is_taken_but_not_fewer_than_five(self):
        small = storage_with(made_up(40), epochs=2)
        found = attack(small, seeds=3, work=Work(1))
        assert (found.people, found.others) == (5, 5)
        large = storage_with(made_up(140), epochs=2)
        assert attack(large, seeds=3, work=Work(1)).people == 7

    @pytest.mark.full
    def test_progress_ends_when_all_is_trained(self, shop, reporter):
        attack(shop, 10, 3, Work(1, reporter))
        ((label, total),) = reporter.work
        assert label == "training and attacking"
        assert reporter.done == total > 0


class TestRefusals:
    def test_too_few_people_can_not_be_told_apart(self):
        with pytest.raises(Refused, match="there are only 19 users, too few to tell people apart: learn from 20"):
            attack(storage_with(made_up(19), epochs=1), work=Work(1))

    def test_nor_can_nobody(self):
        few = made_up(4)
        storage = storage_with(few, epochs=1)
        forget(storage, [Request(user) for user in set(few["user_id"].to_pylist())])
        with pytest.raises(Refused, match="there are only 0 users, too few"):
            attack(storage, work=Work(1))

    @pytest.mark.parametrize("users", [-1, 4, 26])
    def test_half_of_the_people_must_stay(self, shop, users):
        with pytest.raises(WrongUse, match=f"users={users} of 100 can't be probed: give a number from 5 to 25"):
            attack(shop, users, work=Work(1))

    def test_two_seeds_show_no_spread(self, shop):
        with pytest.raises(WrongUse, match="give seeds=3 or more"):
            attack(shop, seeds=2, work=Work(1))


def erased_from(table: pa.Table) -> MemoryStorage:
    storage = storage_with(table, holdout=0.1)
    forget(storage, [Request(user) for user in ERASED], work=Work(1), yes=True)
    return storage


@pytest.fixture(scope="module")
def without(everyone) -> MemoryStorage:
    """A recommender that has erased some people; to be read only."""
    return erased_from(everyone)


class TestReallyErased:
    @pytest.fixture
    def file(self, everyone, tmp_path):
        pacsv.write_csv(everyone, tmp_path / "all.csv")
        return tmp_path / "all.csv"

    def test_the_model_as_it_is_is_not_accused(self, without, file):
        found = attack_erased(without, file, ERASED, 8, work=Work(1))
        assert found.verdict == "forgotten"
        assert (found.people, found.others, found.pretended) == (len(ERASED), len(ERASED), False)
        assert all(one.before.mean > 0.85 for one in found.findings)

    @pytest.mark.full
    def test_shared_parameters_that_they_shaped_are_found_out(self, everyone, file):
        kept, without = storage_with(everyone, holdout=0.1), erased_from(everyone)
        with kept.reading() as old, without.writing() as session:
            before, state = old.state(), session.state()
            for link, was in zip(state.chain, before.chain, strict=True):
                shared = old.checkpoints.get(was.fingerprint).parameters.shared
                rows = session.checkpoints.get(link.fingerprint).parameters.rows
                session.checkpoints.put(Checkpoint(link.fingerprint, link.parent, Parameters(shared, rows)))
            session.commit(state)
        found = attack_erased(without, file, ERASED, 8, work=Work(1))
        assert found.verdict == "remembers"
        assert {one.view for one in found.findings if one.verdict == "remembers"} == {"shared parameters"}

    def test_someone_who_is_still_there_was_not_erased(self, without, file):
        with pytest.raises(Refused, match="the user 'u0001' was not erased: forget them first, or leave them out"):
            attack_erased(without, file, [*ERASED, "u0001"], work=Work(1))

    def test_someone_without_rows_can_not_be_attacked_with(self, without, file):
        with pytest.raises(
            UnknownUser, match="the data has no rows of the user 'zoe': give the rows that were learned"
        ):
            attack_erased(without, file, ["zoe"], work=Work(1))

    def test_ratings_lie_on_the_scale_that_was_learned(self, everyone, without, tmp_path):
        doubled = np.asarray(everyone["rating"]) * 2
        pacsv.write_csv(everyone.set_column(2, "rating", pa.array(doubled)), tmp_path / "doubled.csv")
        with pytest.raises(DataRefused):
            attack_erased(without, tmp_path / "doubled.csv", ERASED, work=Work(1))

    @pytest.mark.full
    def test_items_that_were_never_learned_are_left_aside(self, everyone, without, tmp_path, file):
        more = pa.table({"user_id": [ERASED[0]], "item_id": ["later"], "rating": np.array([5], np.float32)})
        pacsv.write_csv(pa.concat_tables([everyone, more]), tmp_path / "more.csv")
        one, other = (attack_erased(without, name, ERASED, 3, work=Work(1)) for name in (file, tmp_path / "more.csv"))
        assert one.findings == other.findings
