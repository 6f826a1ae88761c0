"""Plan and forget, in memory and on disk."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from erasable.errors import NotReproducible, Refused, UnknownInteraction, UnknownUser
from erasable.operations import (
    DiskHome,
    Extent,
    MemoryHome,
    Outside,
    Recommender,
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
from erasable.requests import Request
from erasable.training import Config, environment_for
from kit import elsewhere
from kit.asking import submit


def users_at(home, position):
    with home.reading() as session:
        return session.state().knowledge.groups[position].users.texts()


def held(home) -> SimpleNamespace:
    """Return everything that a home holds: arrays byte by byte, data, version and papers."""
    with home.reading() as session:
        state = session.state()
        checkpoints = [session.checkpoints.get(link.fingerprint).arrays() for link in state.chain]
        return SimpleNamespace(
            names=[link.fingerprint for link in state.chain],
            arrays=[{name: array.tobytes() for name, array in arrays.items()} for arrays in checkpoints],
            groups=[group.digest() for group in state.knowledge.groups],
            held_out=state.knowledge.held_out.digest(),
            stamp=session.stamp,
            papers=session.papers(),
            certificates=dict(session.issued()),
        )


def certificates_of(home) -> list[dict]:
    with home.reading() as session:
        return [json.loads(content) for name, content in session.issued().items() if name.endswith(".json")]


def test_what_is_left_is_what_learning_without_the_person_gives(home, learned, as_table, ratings, config):
    user = users_at(home, 1)[0]
    forget(home, [Request(user)])
    scratch = MemoryHome()
    table = as_table({other: has for other, has in ratings.items() if other != user})
    with scratch.writing() as session:
        learn_into(session, table, config, Inputs(groups_from=learned), Work(1))
    found, expected = held(home), held(scratch)
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
            forget(DiskHome(tmp_path / name), requests)
        found[name] = held(DiskHome(tmp_path / name))
    assert found["together"].arrays == found["apart"].arrays
    assert found["together"].names == found["apart"].names
    assert (found["together"].stamp.version, found["apart"].stamp.version) == (2, 5)


def test_forgetting_does_what_was_planned(home):
    requests = [Request(users_at(home, 2)[0]), Request(users_at(home, 1)[0])]
    planned = plan(home, requests)
    done = forget(home, requests)
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
def test_what_is_refused_changes_nothing(home, requests, error):
    before = held(home)
    with pytest.raises(error):
        forget(home, requests)
    with pytest.raises(error):
        plan(home, requests)
    assert held(home) == before


def test_unknown_people_may_be_left_out(home):
    some = forget(home, [Request("zoe"), Request("ann"), Request("yan")], ignore_unknown=True)
    assert (len(some.certificates), some.left_out) == (1, 2)
    before = held(home)
    nothing = forget(home, [Request("zoe"), Request("bob", ("f",))], ignore_unknown=True)
    assert (nothing.certificates, nothing.receipts, nothing.left_out) == ((), (), 2)
    assert (nothing.stages_rerun, nothing.stages_total, nothing.cost_ratio) == (0, 3, 0.0)
    assert held(home) == before


def test_items_that_are_not_held_may_be_left_out(home):
    forget(home, [Request("bob", ("a", "f", "nothing"))], ignore_unknown=True)
    with home.reading() as session:
        assert session.state().knowledge.items_of("bob") == {"b", "d"}


def test_without_a_request_and_with_nothing_begun_nothing_is_done(home):
    before = held(home)
    done = forget(home, [])
    assert (done.certificates, done.receipts, done.finished, done.stages_total) == ((), (), 0, 3)
    assert held(home) == before


def kept_of(home) -> list[bool]:
    """Return which steps the last record of the log says were kept."""
    with home.reading() as session:
        return [step["kept"] for step in records_of(session.papers().audit)[-1]["steps"]]


def test_the_log_says_which_stages_were_kept_and_about_what_it_cost_and_the_certificate_does_not(home):
    done = forget(home, [Request(users_at(home, 1)[0])])
    (facts,) = certificates_of(home)
    assert kept_of(home) == [True, False, False]
    assert not {"chain", "stages_rerun", "stages_total", "cost_ratio", "seconds", "seed", "times"} & {*facts}
    with home.reading() as session:
        record = records_of(session.papers().audit)[-1]
    assert (record["stages"], record["cost"]) == (3, share(done.cost_ratio))


def test_nothing_that_is_returned_shows_a_salt_or_an_id(home):
    done = forget(home, [Request("ann")], outside=Outside(reference="case kxqz"))
    receipt = done.receipts[0]
    assert (receipt.user_id, receipt.reference) == ("ann", "case kxqz")
    for shown in (repr(done), repr(receipt), str(receipt)):
        assert "ann" not in shown
        assert "kxqz" not in shown
        assert receipt.salt not in shown


def test_the_certificates_of_one_call_share_all_but_who_asked(home):
    forget(home, [Request("ann"), Request("bob", ("a",))])
    one, other = certificates_of(home)
    differing = {name for name in one if one[name] != other[name]}
    assert differing == {"request_id", "scope", "subject", "reference", "do_not_learn", "signature"}
    assert one["version"] == 2


def test_a_home_in_memory_has_no_files_to_search_and_one_on_disk_has(home):
    forget(home, [Request("ann")])
    (facts,) = certificates_of(home)
    assert (facts["scan"] is None) == isinstance(home, MemoryHome)


class TestReceipts:
    def test_each_person_gets_one_that_opens_the_certificate_of_the_same_place(self, home):
        asked = [Request("ann"), Request("bob", ("a", "b")), Request("bob", ("d",)), Request("cat")]
        done = forget(home, asked)
        assert [(one.user_id, one.items) for one in done.receipts] == [
            ("ann", None),
            ("bob", ("a", "b", "d")),
            ("cat", None),
        ]
        with home.reading() as session:
            issued = session.issued()
        certificates = [read_certificate(issued[Path(place).name]) for place in done.certificates]
        opened = [[receipt.opens(one) for one in certificates] for receipt in done.receipts]
        assert opened == [[True, False, False], [False, True, False], [False, False, True]]

    def test_they_may_be_written_into_a_folder_for_their_owner_alone(self, home, tmp_path):
        folder = tmp_path / "receipts"
        for _ in range(2):
            user = users_at(home, 0)[0]
            done = forget(home, [Request(user)], outside=Outside(receipts=folder))
            path = folder / f"{done.receipts[0].request_id}.json"
            assert read_receipt(path.read_bytes()) == done.receipts[0]
            assert path.stat().st_mode & 0o777 == 0o600
        assert len(list(folder.iterdir())) == 2

    def test_without_a_folder_none_is_written(self, home, tmp_path):
        before = {*tmp_path.rglob("*.json")}
        done = forget(home, [Request("ann")])
        written = {*tmp_path.rglob("*.json")} - before
        assert not [path for path in written if done.receipts[0].salt in path.read_text()]


class TestAnotherNumericEnvironment:
    @pytest.fixture
    def learned_elsewhere(self, table, config):
        """A home that seems to have learned on another machine."""
        home = MemoryHome()
        with home.writing() as session:
            learn_into(session, table, config, Inputs(), Work(1))
        elsewhere.moved_in_memory(home, machine="abacus")
        return home

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


def test_a_random_plan_is_for_that_many_users_and_repeats(home):
    first, second = (replace(plan_random(home, 2), seconds_estimated=0.0, apart=None) for _ in range(2))
    assert first == second
    everyone = plan_random(home, 6)
    assert (everyone.samples, everyone.samples_retrain, everyone.cost_ratio) == (0, 0, 0.0)
    with pytest.raises(Refused, match="there are only 6 users"):
        plan_random(home, 7)


def test_planning_changes_nothing(home):
    before = held(home)
    plan(home, [Request("ann")])
    plan_random(home, 3)
    assert held(home) == before


class TestManyPeople:
    """More than 1 % of the people, and more than 10, are erased with a yes only."""

    @pytest.fixture
    def crowd(self, as_table, tmp_path):
        names = [f"u{number:03d}" for number in range(40)]
        config = Config(model="als", factors=2, epochs=1)
        learn(as_table({name: {"a": 1, "b": 1} for name in names}), tmp_path / "crowd", config, work=Work(1))
        return DiskHome(tmp_path / "crowd"), names

    def test_eleven_of_forty_are_refused_and_nothing_is_done(self, crowd):
        home, names = crowd
        with pytest.raises(Refused, match="this erases 11 of 40 people: if that is meant, give forget yes=True"):
            forget(home, [Request(name) for name in names[:11]], work=Work(1))
        assert (status(home)["users"], status(home)["pending"], status(home)["version"]) == (40, 0, 1)

    def test_single_interactions_of_many_people_count_too(self, crowd):
        home, names = crowd
        with pytest.raises(Refused, match="11 of 40 people"):
            forget(home, [Request(name, ("a",)) for name in names[:11]], work=Work(1))

    def test_with_a_yes_they_are_erased(self, crowd):
        home, names = crowd
        assert len(forget(home, [Request(name) for name in names[:11]], work=Work(1), yes=True).certificates) == 11

    def test_ten_are_erased_without_it(self, crowd):
        home, names = crowd
        requests = [Request(name) for name in (*names[:10], "nobody", "noone")]
        assert len(forget(home, requests, ignore_unknown=True, work=Work(1)).certificates) == 10

    def test_what_was_submitted_before_was_asked_about_then(self, crowd):
        home, names = crowd
        submit(home, *map(Request, names[:11]))
        assert len(forget(home, [], work=Work(1)).certificates) == 11

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
