"""Plan and forget, in memory and on disk."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from erasable.chain import Config, environment_for
from erasable.errors import NotReproducible, Refused, UnknownInteraction, UnknownUser
from erasable.operations import (
    DiskStorage,
    Extent,
    MemoryStorage,
    Outside,
    Work,
    forget,
    learn,
    plan,
    plan_random,
    status,
    verify,
)
from erasable.operations.learn import learn_into
from erasable.operations.prepare import Inputs
from erasable.proof import read_certificate, read_receipt, records_of
from erasable.proof.coarse import share
from erasable.recommender import Recommender
from erasable.requests import Request
from kit import elsewhere
from kit.asking import submit


def users_at(storage, position):
    with storage.reading() as session:
        return session.state().dataset.groups[position].users.texts()


def held(storage) -> SimpleNamespace:
    """Return everything that a storage holds: arrays byte by byte, data, version and documents."""
    with storage.reading() as session:
        state = session.state()
        checkpoints = [session.checkpoints.get(link.fingerprint).arrays() for link in state.chain]
        return SimpleNamespace(
            names=[link.fingerprint for link in state.chain],
            arrays=[{name: array.tobytes() for name, array in arrays.items()} for arrays in checkpoints],
            groups=[group.digest() for group in state.dataset.groups],
            held_out=state.dataset.held_out.digest(),
            stamp=session.stamp,
            documents=session.documents(),
            certificates=dict(session.issued()),
        )


def certificates_of(storage) -> list[dict]:
    with storage.reading() as session:
        return [json.loads(content) for name, content in session.issued().items() if name.endswith(".json")]


def test_what_is_left_is_what_learning_without_the_person_gives(storage, learned, as_table, ratings, config):
    user = users_at(storage, 1)[0]
    forget(storage, [Request(user)])
    scratch = MemoryStorage()
    table = as_table({other: has for other, has in ratings.items() if other != user})
    with scratch.writing() as session:
        learn_into(session, table, config, Inputs(groups_from=learned), Work(1))
    found, expected = held(storage), held(scratch)
    assert (found.names, found.arrays) == (expected.names, expected.arrays)
    assert (found.groups, found.held_out) == (expected.groups, expected.held_out)


def test_one_call_and_several_lead_to_the_same(table, config, tmp_path):
    ways = {
        "together": [[Request("ann"), Request("bob", ("a", "d")), Request("cat")]],
        "apart": [[Request("cat")], [Request("bob", ("d",))], [Request("ann")], [Request("bob", ("a",))]],
    }
    found = {}
    for name, calls in ways.items():
        learn(table, tmp_path / name, config)
        for requests in calls:
            forget(DiskStorage(tmp_path / name), requests)
        found[name] = held(DiskStorage(tmp_path / name))
    assert found["together"].arrays == found["apart"].arrays
    assert found["together"].names == found["apart"].names
    assert (found["together"].stamp.version, found["apart"].stamp.version) == (2, 5)


def test_forgetting_does_what_was_planned(storage):
    requests = [Request(users_at(storage, 2)[0]), Request(users_at(storage, 1)[0])]
    planned = plan(storage, requests)
    done = forget(storage, requests)
    assert (planned.rerun, planned.stages_total) == ((1, 2), 3)
    assert (done.stages_rerun, done.stages_total, done.cost_ratio) == (2, 3, planned.cost_ratio)
    assert done.chain_ratio == planned.chain_ratio
    assert (len(done.certificates), done.left_out, done.dropped, done.finished) == (2, 0, 0, 0)


@pytest.mark.parametrize(
    ("requests", "error"),
    [
        ([Request("zoe")], UnknownUser),
        ([Request("ann"), Request("zoe")], UnknownUser),
        ([Request("ann", ("a", "f"))], UnknownInteraction),
        ([Request("bob"), Request("ann", ("nothing",))], UnknownInteraction),
    ],
)
def test_what_is_refused_changes_nothing(storage, requests, error):
    before = held(storage)
    with pytest.raises(error):
        forget(storage, requests)
    with pytest.raises(error):
        plan(storage, requests)
    assert held(storage) == before


def test_unknown_people_may_be_left_out(storage):
    some = forget(storage, [Request("zoe"), Request("ann"), Request("yan")], ignore_unknown=True)
    assert (len(some.certificates), some.left_out) == (1, 2)
    before = held(storage)
    nothing = forget(storage, [Request("zoe"), Request("bob", ("f",))], ignore_unknown=True)
    assert (nothing.certificates, nothing.receipts, nothing.left_out) == ((), (), 2)
    assert (nothing.stages_rerun, nothing.stages_total, nothing.cost_ratio) == (0, 3, 0.0)
    assert held(storage) == before


def test_items_that_are_not_held_may_be_left_out(storage):
    forget(storage, [Request("bob", ("a", "f", "nothing"))], ignore_unknown=True)
    with storage.reading() as session:
        assert session.state().dataset.items_of("bob") == {"b", "d"}


def test_without_a_request_and_with_nothing_begun_nothing_is_done(storage):
    before = held(storage)
    done = forget(storage, [])
    assert (done.certificates, done.receipts, done.finished, done.stages_total) == ((), (), 0, 3)
    assert held(storage) == before


def kept_of(storage) -> list[bool]:
    """Return which steps the last record of the log says were kept."""
    with storage.reading() as session:
        return [step["kept"] for step in records_of(session.documents().log)[-1]["steps"]]


def test_the_log_says_which_stages_were_kept_and_about_what_it_cost_and_the_certificate_does_not(storage):
    done = forget(storage, [Request(users_at(storage, 1)[0])])
    (facts,) = certificates_of(storage)
    assert kept_of(storage) == [True, False, False]
    assert not {"chain", "stages_rerun", "stages_total", "cost_ratio", "seconds", "seed", "times"} & {*facts}
    with storage.reading() as session:
        record = records_of(session.documents().log)[-1]
    assert (record["stages"], record["cost"]) == (3, share(done.cost_ratio))


def test_nothing_that_is_returned_shows_a_salt_or_an_id(storage):
    done = forget(storage, [Request("ann")], outside=Outside(reference="case kxqz"))
    receipt = done.receipts[0]
    assert (receipt.user_id, receipt.reference) == ("ann", "case kxqz")
    for shown in (repr(done), repr(receipt), str(receipt)):
        assert "ann" not in shown
        assert "kxqz" not in shown
        assert receipt.salt not in shown


def test_the_certificates_of_one_call_share_all_but_who_asked(storage):
    forget(storage, [Request("ann"), Request("bob", ("a",))])
    one, other = certificates_of(storage)
    differing = {name for name in one if one[name] != other[name]}
    assert differing == {"request_id", "scope", "subject", "reference", "do_not_learn", "signature"}
    assert one["version"] == 2


def test_a_storage_in_memory_has_no_files_to_search_and_one_on_disk_has(storage):
    forget(storage, [Request("ann")])
    (facts,) = certificates_of(storage)
    assert (facts["scan"] is None) == isinstance(storage, MemoryStorage)


class TestReceipts:
    def test_each_person_gets_one_that_opens_the_certificate_of_the_same_place(self, storage):
        asked = [Request("ann"), Request("bob", ("a", "b")), Request("bob", ("d",)), Request("cat")]
        done = forget(storage, asked)
        assert [(one.user_id, one.items) for one in done.receipts] == [
            ("ann", None),
            ("bob", ("a", "b", "d")),
            ("cat", None),
        ]
        with storage.reading() as session:
            issued = session.issued()
        certificates = [read_certificate(issued[Path(place).name]) for place in done.certificates]
        opened = [[receipt.opens(one) for one in certificates] for receipt in done.receipts]
        assert opened == [[True, False, False], [False, True, False], [False, False, True]]

    def test_they_may_be_written_into_a_folder_for_their_owner_alone(self, storage, tmp_path):
        folder = tmp_path / "receipts"
        for _ in range(2):
            user = users_at(storage, 0)[0]
            done = forget(storage, [Request(user)], outside=Outside(receipts=folder))
            path = folder / f"{done.receipts[0].request_id}.json"
            assert read_receipt(path.read_bytes()) == done.receipts[0]
            assert path.stat().st_mode & 0o777 == 0o600
        assert len(list(folder.iterdir())) == 2

    def test_without_a_folder_none_is_written(self, storage, tmp_path):
        before = {*tmp_path.rglob("*.json")}
        done = forget(storage, [Request("ann")])
        written = {*tmp_path.rglob("*.json")} - before
        assert not [path for path in written if done.receipts[0].salt in path.read_text()]


class TestAnotherNumericEnvironment:
    @pytest.fixture
    def learned_elsewhere(self, table, config):
        """A storage that seems to have learned on another machine."""
        storage = MemoryStorage()
        with storage.writing() as session:
            learn_into(session, table, config, Inputs(), Work(1))
        elsewhere.moved_in_memory(storage, machine="abacus")
        return storage

    def test_is_refused_and_changes_nothing(self, learned_elsewhere):
        before = held(learned_elsewhere)
        with pytest.raises(NotReproducible, match=r"machine is .* here and was abacus.*give rerun=True"):
            forget(learned_elsewhere, [Request("ann")])
        assert held(learned_elsewhere) == before

    def test_may_train_everything_again(self, learned_elsewhere, config):
        done = forget(learned_elsewhere, [Request(users_at(learned_elsewhere, 2)[0])], rerun=True)
        assert (done.stages_rerun, done.stages_total) == (3, 3)
        (facts,) = certificates_of(learned_elsewhere)
        assert kept_of(learned_elsewhere) == [False, False, False]
        assert facts["environment"] == environment_for(config)
        assert verify(learned_elsewhere).identical is True


def test_a_random_plan_is_for_that_many_users_and_repeats(storage):
    first, second = (replace(plan_random(storage, 2), seconds_estimated=0.0, apart=None) for _ in range(2))
    assert first == second
    everyone = plan_random(storage, 6)
    assert (everyone.samples, everyone.samples_retrain, everyone.cost_ratio) == (0, 0, 0.0)
    with pytest.raises(Refused, match="there are only 6 users"):
        plan_random(storage, 7)


def test_planning_changes_nothing(storage):
    before = held(storage)
    plan(storage, [Request("ann")])
    plan_random(storage, 3)
    assert held(storage) == before


class TestManyPeople:
    """More than 1 % of the people, and more than 10, are erased with a yes only."""

    @pytest.fixture
    def crowd(self, as_table, tmp_path):
        names = [f"u{number:03d}" for number in range(40)]
        config = Config(model="als", factors=2, epochs=1)
        learn(as_table({name: {"a": 1, "b": 1} for name in names}), tmp_path / "crowd", config, work=Work(1))
        return DiskStorage(tmp_path / "crowd"), names

    def test_eleven_of_forty_are_refused_and_nothing_is_done(self, crowd):
        storage, names = crowd
        with pytest.raises(Refused, match="this erases 11 of 40 people: if that is meant, give forget yes=True"):
            forget(storage, [Request(name) for name in names[:11]], work=Work(1))
        assert (status(storage)["users"], status(storage)["pending"], status(storage)["version"]) == (40, 0, 1)

    def test_single_interactions_of_many_people_count_too(self, crowd):
        storage, names = crowd
        with pytest.raises(Refused, match="11 of 40 people"):
            forget(storage, [Request(name, ("a",)) for name in names[:11]], work=Work(1))

    def test_with_a_yes_they_are_erased(self, crowd):
        storage, names = crowd
        assert len(forget(storage, [Request(name) for name in names[:11]], work=Work(1), yes=True).certificates) == 11

    def test_ten_are_erased_without_it(self, crowd):
        storage, names = crowd
        requests = [Request(name) for name in (*names[:10], "nobody", "noone")]
        assert len(forget(storage, requests, ignore_unknown=True, work=Work(1)).certificates) == 10

    def test_what_was_submitted_before_was_asked_about_then(self, crowd):
        storage, names = crowd
        submit(storage, *map(Request, names[:11]))
        assert len(forget(storage, [], work=Work(1)).certificates) == 11

    @pytest.mark.parametrize(
        ("people", "total", "large"), [(10, 10, False), (11, 11, True), (11, 1099, True), (11, 1100, False)]
    )
    def test_both_bounds_count(self, people, total, large):
        assert Extent(people, total).large is large

    def test_in_python_it_is_the_same(self, as_table):
        names = [f"u{number:03d}" for number in range(20)]
        recommender = Recommender(model="als", factors=2).fit(as_table({name: {"a": 1, "b": 1} for name in names}))
        with pytest.raises(Refused, match="give forget yes=True"):
            recommender.forget(names[:11])
        assert len(recommender.recommend(names[:11], k=2)) == 0  # known still, and having every item
        assert len(recommender.forget(names[:11], yes=True).certificates) == 11
