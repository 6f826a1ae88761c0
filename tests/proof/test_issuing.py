"""Issuing: one signed certificate for each person, which says what was done and what it rests on."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable import fingerprint
from erasable.chain import ORIGIN, Checkpoint, Config
from erasable.data import RatingScale
from erasable.evaluation import Utility
from erasable.proof import data_digest, salted_digest
from erasable.proof.certificate import (
    CertifiedScan,
    certified_steps,
    new_key,
    public_key_of,
    read_certificate,
    reference_commitment,
)
from erasable.proof.coarse import grain_for, rounded
from erasable.proof.issuing import Outcome, issue_certificates
from erasable.proof.log import Head
from erasable.proof.search_file import Erased
from erasable.requests import Request
from erasable.workspace import Stamp
from kit.asking import erased, sought
from kit.fitting import fitting
from kit.handmade import handmade
from kit.plain_digests import plain_digests
from kit.rated_shop import rated_shop

SALT, OTHER_SALT = "ab" * 32, "cd" * 32
KEY = new_key()
SCAN = CertifiedScan(files="< 10", size="< 100 MB", kinds=("parquet", "json"), searched=("ids", "rows"))
ERASED = {
    "at": "2026-01-01T00:00:02+00:00",
    "seconds": 1.23456,
    "threads": 2,
    "rerun": (1,),
    "cost_ratio": 0.75,
    "cost_at_most": 0.75,
    "seconds_at_most": 3.5,
    "data_before": "0b" * 32,
    "utility_before": {"hr@10": 0.125},
}
RECEIVED = "2026-01-01T00:00:01+00:00"


def outcome(**changes) -> Outcome:
    shop = handmade()
    facts = {
        "state": shop.state,
        "environment": {"machine": "abacus"},
        "stamp": Stamp(7, SALT),
        "audit": Head(3, "0a" * 32),
        "scan": SCAN,
        "scanned": "2026-01-01T00:00:03+00:00",
        "utility": None,
    }
    return Outcome(**facts | changes)


def done(*requests: Request, **facts) -> Erased:
    return erased(*requests, **ERASED | facts)


def issue(*requests: Request, told: dict | None = None, **changes) -> list[dict]:
    """Return what certificates say, as anyone reads them."""
    issued = issue_certificates(done(*requests, **told or {}), outcome(**changes), KEY)
    return [json.loads(certificate.content) for certificate in issued]


def with_config(**settings) -> dict:
    """Return an outcome under other settings."""
    state = handmade().state
    dataset = replace(state.dataset, config=Config(**fitting({"groups": 2, **settings})))
    return {"state": replace(state, dataset=dataset)}


class TestOneForEachPerson:
    def test_its_name_is_random_and_long_and_that_of_the_request(self):
        accepted = done(Request("ann"), Request("bob"))
        names = [one.request_id for one in issue_certificates(accepted, outcome(), KEY)]
        assert names == [one.request_id for one in accepted.people]
        assert all(re.fullmatch("[0-9a-f]{32}", name) for name in names)
        assert len({*names, *(issue(Request("ann"))[0]["request_id"] for _ in range(3))}) == 5

    def test_it_says_whether_everything_was_asked_for(self):
        some, everything = issue(Request("bob", ("a",)), Request("cat"))
        assert some["scope"] == "some interactions of one person"
        assert everything["scope"] == "all data of one person"

    def test_they_differ_in_what_is_about_the_person_alone(self):
        ann, bob = issue(Request("ann"), Request("bob", ("a",)))
        differing = {name for name in ann if ann[name] != bob[name]}
        assert differing == {"request_id", "scope", "subject", "reference", "signature"}

    def test_each_is_signed_with_the_key_and_reads_as_whole(self):
        for certificate in issue_certificates(done(Request("ann"), Request("bob")), outcome(), KEY):
            assert certificate.public_key == public_key_of(KEY)
            assert read_certificate(certificate.content) == certificate

    def test_nobody_asked_nothing_is_issued(self):
        assert issue() == []


class TestWhatItSays:
    def test_what_was_done_and_what_it_rests_on(self):
        (facts,) = issue(Request("dan"))
        dataset = handmade().state.dataset
        assert facts["kind"] == "certificate of erasure"
        assert (facts["version"], facts["policy"], facts["filter"]) == (7, "fixed", "none")
        assert facts["rating_scale"] == [1, 1]
        assert facts["settings"].items() <= dataset.config.flat().items()
        assert facts["threads"] == 2
        assert facts["environment"] == {"machine": "abacus"}
        assert facts["catalogue"] == {
            "declared": True,
            "items": "< 10",
            "origin": "declared",
            "digest": salted_digest(SALT, dataset.items.digest()),
        }
        assert facts["data"] == {"before": "0b" * 32, "after": data_digest(SALT, dataset)}
        assert (facts["cost"], facts["duration"]) == ("more", "< 10 minutes")
        assert facts["scan"] == SCAN.model_dump(mode="json")
        assert facts["scan"]["residues"] == 0
        assert facts["audit"] == {"number": 3, "hash": "0a" * 32}
        assert (facts["issuer"], facts["do_not_learn"]) == (None, None)

    def test_on_which_day_it_was_asked_for_done_searched_and_issued_in_universal_time(self):
        assert issue(Request("dan"))[0]["days"] == {
            "asked": "2026-01-01",
            "erased": "2026-01-01",
            "searched": "2026-01-01",
            "issued": datetime.now(UTC).date().isoformat(),
        }

    def test_the_day_is_that_of_universal_time_wherever_the_person_was(self):
        (one,) = done(Request("dan")).people
        late = one.model_copy(update={"received": "2025-12-31T22:30:00-05:00"})
        asked = done(Request("dan")).model_copy(update={"people": (late,)})
        (certificate,) = issue_certificates(asked, outcome(), KEY)
        assert json.loads(certificate.content)["days"]["asked"] == "2026-01-01"

    def test_no_moment_and_no_seed_is_in_it(self):
        (facts,) = issue(Request("dan"), **with_config(seed=4611686018427387905))
        text = json.dumps(facts)
        assert not re.search(r"\d\d:\d\d", text)
        assert "4611686018427387905" not in text

    def test_who_issues_it_is_named(self):
        assert issue(Request("dan"), issuer="Example Ltd")[0]["issuer"] == "Example Ltd"

    def test_what_was_typed_in_stands_there_as_a_commitment_only(self):
        accepted = sought(Request("dan"), "case of the landlord")
        asked = done().model_copy(update={"people": (accepted,)})
        (certificate,) = issue_certificates(asked, outcome(), KEY)
        assert b"landlord" not in certificate.content
        assert certificate.reference == reference_commitment(accepted.salt, "case of the landlord")
        assert len(certificate.reference) == len(issue(Request("dan"))[0]["reference"])

    def test_what_was_left_of_a_pending_erasure_of_0_1_is_certified_without_bounds(self):
        (facts,) = issue(Request("dan"), told={"cost_at_most": None, "seconds_at_most": None})
        assert (facts["cost"], facts["duration"]) == ("not said", "not said")

    @pytest.mark.parametrize("policy", ["fixed", "regroup"])
    def test_the_policy_is_named_and_says_what_became_of_a_filter(self, policy):
        found = with_config(policy=policy)["state"]
        filtered = replace(found, dataset=replace(found.dataset, kept_items=frozenset("ab")))
        assert issue(Request("dan"), state=found)[0]["filter"] == "none"
        (facts,) = issue(Request("dan"), state=filtered)
        assert facts["policy"] == policy
        assert facts["filter"] == {"fixed": "frozen", "regroup": "applied anew"}[policy]

    def test_independent_groups_and_items_that_follow_the_people_are_named(self):
        found = with_config(grouping="independent")["state"]
        known = replace(found.dataset, catalogue=None, scale=RatingScale(0, 5))
        (facts,) = issue(Request("dan"), state=replace(found, dataset=known))
        assert facts["policy"] == "independent"
        assert facts["catalogue"]["declared"] is False
        assert "gone with them" in facts["catalogue"]["origin"]
        assert facts["rating_scale"] == [0, 5]

    def test_what_it_does_not_prove_is_said_too(self):
        (facts,) = issue(Request("dan"))
        assert "erasable verify" in facts["proves"]
        for word in ("input file", "exports", "backups", "groups", "scale"):
            assert word in facts["does_not_prove"]

    def test_in_memory_there_is_no_scan(self):
        assert issue(Request("dan"), scan=None)[0]["scan"] is None


class TestUtility:
    AFTER = Utility("whole-catalogue", 3, {"hr@10": 0.123456, "ndcg@10": 1.0})

    def test_without_a_holdout_there_is_none(self):
        assert issue(Request("dan"))[0]["utility"] is None

    def test_before_and_after_are_told_coarsely_and_to_what_grain(self):
        (facts,) = issue(Request("dan"), utility=self.AFTER)
        assert facts["utility"] == {
            "protocol": "whole-catalogue",
            "users": "< 10",
            "grain": 1,
            "before": {"hr@10": 0},
            "after": {"hr@10": 0, "ndcg@10": 1},
        }

    @given(st.integers(1, 20_000), st.floats(0, 1))
    def test_ten_people_hide_in_a_step_and_no_measure_leaves_its_range(self, users, score):
        grain = grain_for(users)
        found = rounded(score, grain)
        assert 10 / max(users, 10) <= grain <= 1
        assert 0 <= found <= 1
        assert abs(found - score) <= grain / 2 + 1e-4
        assert rounded(found, grain) == found

    def test_one_person_more_or_less_does_not_show_in_grain_and_number(self):
        told = [(grain_for(users), issue(Request("dan"), utility=Utility("p", users, {}))) for users in (500, 501, 943)]
        assert {grain for grain, _ in told} == {0.02}
        assert {facts["utility"]["users"] for _, (facts,) in told} == {"< 1,000"}

    def test_where_nothing_was_measured_before_that_is_said(self):
        assert issue(Request("dan"), told={"utility_before": None}, utility=self.AFTER)[0]["utility"]["before"] is None


class TestTheChain:
    @pytest.mark.parametrize("rerun", [(), (0,), (1,), (0, 1)])
    def test_which_steps_were_kept_is_in_no_certificate(self, rerun):
        told = {"rerun": rerun, "cost_ratio": len(rerun) / 2, "seconds": 1.0 + len(rerun)}
        facts = {**issue(Request("dan"), told=told)[0]}
        expected = {**issue(Request("dan"))[0]}
        for name in ("request_id", "subject", "reference", "signature"):
            facts.pop(name), expected.pop(name)
        assert facts == expected

    def test_names_parents_and_results_are_those_of_the_checkpoints_under_the_salt(self):
        shop = handmade()
        steps = certified_steps(shop.state, shop.checkpoints, SALT, (1,))
        arrays = [shop.checkpoints.get(name).arrays() for name in ("one", "two")]
        assert [step.kept for step in steps] == [True, False]
        assert [step.digest for step in steps] == [salted_digest(SALT, name) for name in ("one", "two")]
        assert [step.parent for step in steps] == [ORIGIN, salted_digest(SALT, "one")]
        assert [step.result for step in steps] == [salted_digest(SALT, fingerprint.of_arrays(one)) for one in arrays]

    def test_another_salt_shares_no_digest(self):
        shop = handmade()
        (here,), (there,) = issue(Request("dan")), issue(Request("dan"), stamp=Stamp(7, OTHER_SALT))
        digests = [
            {facts["catalogue"]["digest"], facts["data"]["after"]}
            | {
                getattr(step, name)
                for step in certified_steps(shop.state, shop.checkpoints, salt, ())
                for name in ("digest", "parent", "result")
            }
            for facts, salt in ((here, SALT), (there, OTHER_SALT))
        ]
        assert len(digests[0]) == len(digests[1]) == 7
        assert digests[0] & digests[1] == {ORIGIN}

    def test_each_stage_of_sisa_begins_at_the_origin(self):
        shop = rated_shop(strategy="sisa")
        chain = tuple(replace(link, parent=ORIGIN) for link in shop.state.chain)
        found = certified_steps(replace(shop.state, chain=chain), shop.checkpoints, SALT, (1,))
        assert [step.parent for step in found] == [ORIGIN, ORIGIN]

    def test_one_other_number_in_a_checkpoint_changes_its_result_alone(self):
        shop = handmade()
        before = certified_steps(shop.state, shop.checkpoints, SALT, ())
        old = shop.checkpoints.get("two")
        arrays = {name: array.copy() for name, array in old.arrays().items()}
        arrays["rows.user"][0, 0] = np.nextafter(arrays["rows.user"][0, 0], np.float32(9))
        shop.checkpoints.put(Checkpoint.from_arrays("two", "one", arrays))
        after = certified_steps(shop.state, shop.checkpoints, SALT, ())
        assert after[0] == before[0]
        assert after[1].result != before[1].result
        assert after[1] == before[1].model_copy(update={"result": after[1].result})


class TestNothingPersonal:
    def test_neither_the_person_nor_the_items_nor_others_are_named(self):
        text = json.dumps(issue(Request("someone-unmistakable", ("an-unmistakable-item",)), Request("bob", ("a",))))
        for word in ("unmistakable", '"ann"', '"bob"', '"cat"', '"a"', '"b"', '"e"'):
            assert word not in text

    def test_nothing_in_it_is_a_digest_that_a_guess_could_be_tested_against(self):
        asked, shop = done(Request("dan")), handmade()
        (certificate,) = issue_certificates(asked, outcome(), KEY)
        text = certificate.content.decode()
        for link in shop.state.chain:
            assert f'"{link.fingerprint}"' not in text
            assert fingerprint.of_arrays(shop.checkpoints.get(link.fingerprint).arrays()) not in text
        assert not [digest for digest in plain_digests(shop.state.dataset) if digest in text]

    def test_no_salt_and_no_private_key_is_in_it(self):
        asked = done(Request("dan"), Request("bob"))
        for certificate in issue_certificates(asked, outcome(), KEY):
            text = certificate.content.decode()
            for secret in (SALT, KEY.decode(), *(one.salt for one in asked.people)):
                assert secret not in text
