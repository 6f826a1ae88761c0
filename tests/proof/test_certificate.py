"""The certificate: what it says, what it must not say, and digests that nobody can test a guess against."""

import json
import re
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from erasable.operations import DiskHome, Inputs, forget, learn
from erasable.proof import issue_certificates, salted_digest
from erasable.training import Config, numeric_environment
from erasable.unlearning import Erasure, Request, plan_change

PERSON = "someone-with-a-long-unmistakable-id"
SALT, OTHER_SALT = "ab" * 32, "cd" * 32


def shop() -> pa.Table:
    users = [PERSON, PERSON, "bob", "bob", "cat", "cat", "dan", "dan"]
    items = ["an-unmistakable-item", "b", "a", "b", "a", "c", "b", "c"]
    return pa.table({"user_id": users, "item_id": items, "rating": [5, 4, 3, 2, 1, 5, 4, 3]})


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """What a small shop knows, held in memory."""
    folder = tmp_path_factory.mktemp("proof") / "shop"
    learn(shop(), folder, Config(groups=2, epochs=2, holdout=0.2, min_interactions=1))
    with DiskHome(folder).reading() as session:
        state = session.state()
        list(state.knowledge.groups)
    return state


@pytest.fixture
def issue(state):
    def call(*requests: Request, salt: str = SALT) -> list[dict]:
        plan = plan_change(state, Erasure.of(requests).apply(state.knowledge))
        issued = issue_certificates(requests, state, plan, (salt, 1.23456))
        facts = {name: json.loads(content) for name, content in issued.items()}
        assert [one["request_id"] for one in facts.values()] == list(facts)
        return list(facts.values())

    return call


class TestOneForEachPerson:
    def test_several_requests_of_one_person_make_one_certificate(self, issue):
        assert len(issue(Request(PERSON, ("b",)), Request(PERSON), Request("bob"))) == 2

    def test_its_name_is_random_and_long(self, issue):
        names = {issue(Request(PERSON))[0]["request_id"] for _ in range(3)}
        assert len(names) == 3
        assert all(re.fullmatch("[0-9a-f]{32}", name) for name in names)

    def test_it_says_whether_everything_was_asked_for(self, issue):
        some, everything, both = issue(Request("bob", ("a",)), Request("cat"), Request("dan", ("b",)), Request("dan"))
        assert some["scope"] == "some interactions of one person"
        assert everything["scope"] == both["scope"] == "all data of one person"


class TestWhatItSays:
    def test_what_was_done_and_what_it_rests_on(self, issue, state):
        (facts,) = issue(Request(PERSON))
        plan = plan_change(state, Erasure.of([Request(PERSON)]).apply(state.knowledge))
        assert facts["kind"] == "certificate of erasure"
        assert facts["policy"] == "fixed"
        assert facts["filter"] == "frozen"
        assert facts["rating_scale"] == [1, 5]
        assert facts["settings"] == state.knowledge.config.model_dump(mode="json")
        assert facts["environment"] == numeric_environment()
        assert facts["catalogue"] == {
            "declared": False,
            "items": 4,
            "digest": salted_digest(SALT, state.knowledge.catalogue.digest()),
        }
        assert (facts["stages_rerun"], facts["stages_total"]) == (plan.stages_rerun, 2)
        assert facts["cost_ratio"] == plan.cost_ratio
        assert facts["seconds"] == 1.235

    def test_when_it_was_issued_in_universal_time(self, issue):
        issued = datetime.fromisoformat(issue(Request(PERSON))[0]["issued_at"])
        assert abs(datetime.now(UTC) - issued) < timedelta(minutes=5)

    def test_which_stages_were_kept(self, issue, state):
        position, _ = state.knowledge.find(PERSON)
        (facts,) = issue(Request(PERSON))
        assert [(link["position"], link["kept"]) for link in facts["chain"]] == [(0, position == 1), (1, False)]

    def test_what_it_does_not_prove_is_said_too(self, issue):
        (facts,) = issue(Request(PERSON))
        assert "erasable verify" in facts["proves"]
        for word in ("input file", "exports", "backups", "groups", "filter", "catalogue", "scale"):
            assert word in facts["does_not_prove"]

    def test_a_declared_catalogue_and_independent_groups_are_named(self, tmp_path):
        (tmp_path / "items").write_text("a\nb\nc\nan-unmistakable-item\n")
        config = Config(grouping="independent", groups=2, epochs=2, rating_scale=(0, 5))
        learn(shop(), tmp_path / "shop", config, Inputs(catalogue=tmp_path / "items"))
        (path,) = forget(DiskHome(tmp_path / "shop"), [Request(PERSON)]).certificates
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
        assert facts["policy"] == "independent"
        assert facts["catalogue"]["declared"] is True
        assert facts["filter"] == "none"
        assert facts["settings"]["rating_scale"] == [0, 5]


class TestNothingPersonal:
    def test_neither_the_person_nor_the_items_nor_others_are_named(self, issue):
        text = json.dumps(issue(Request(PERSON), Request("bob", ("a",))))
        assert PERSON not in text
        assert "an-unmistakable-item" not in text
        assert '"bob"' not in text
        assert '"a"' not in text

    def test_nothing_in_it_is_a_digest_that_a_guess_could_be_tested_against(self, issue, state):
        (facts,) = issue(Request(PERSON))
        text = json.dumps(facts)
        for link in state.chain:
            assert link.fingerprint not in text
        for group in state.knowledge.groups:
            assert group.digest() not in text
            assert group.users.digest() not in text
        assert state.knowledge.held_out.digest() not in text
        assert SALT not in text

    def test_digests_are_those_of_the_checkpoints_under_the_salt(self, issue, state):
        (facts,) = issue(Request(PERSON))
        assert [link["digest"] for link in facts["chain"]] == [
            salted_digest(SALT, link.fingerprint) for link in state.chain
        ]
        (other,) = issue(Request(PERSON), salt=OTHER_SALT)
        assert not {link["digest"] for link in facts["chain"]} & {link["digest"] for link in other["chain"]}

    def test_a_salted_digest_is_keyed_blake2b(self):
        expected = "3a203738434b9f02fd32efeb5d4cac4f49b403086897f8dc04bb9dfe19c6676b"
        assert salted_digest(SALT, "abc") == expected
        assert salted_digest(SALT, "abd") != expected

    def test_the_salt_in_force_lies_in_the_manifest_and_goes_with_the_version(self, tmp_path):
        learn(shop(), tmp_path / "shop", Config(groups=2, epochs=2))
        home = DiskHome(tmp_path / "shop")
        for user in (PERSON, "bob"):
            (path,) = forget(home, [Request(user)]).certificates
            with home.reading() as session:
                salt, chain = session.manifest.salt, session.state().chain
            with open(path, encoding="utf-8") as file:
                facts = json.load(file)
            assert [link["digest"] for link in facts["chain"]] == [
                salted_digest(salt, link.fingerprint) for link in chain
            ]
