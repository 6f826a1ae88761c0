"""Checking: documents that were removed, exchanged, added or put back are found, and it is said which."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from erasable.chain import Checkpoint
from erasable.models import NMF
from erasable.proof.certificate import (
    Certificate,
    Statement,
    certified_steps,
    new_key,
    read_certificate,
    recorded_steps,
    state_digest,
)
from erasable.proof.checking import (
    certificate_fault,
    chain_fault,
    documents_fault,
    held_fault,
    records_about,
    version_fault,
)
from erasable.proof.issuing import Outcome, issue_certificates
from erasable.proof.log import add_record, head_of
from erasable.requests import Request
from erasable.workspace import Documents, Stamp
from kit.asking import erased
from kit.handmade import handmade

STAMP = Stamp(2, "ab" * 32)


@dataclass(frozen=True)
class Service:
    """The documents of a shop that has learned and forgotten two people, and what it holds."""

    documents: Documents
    issued: dict[str, bytes]
    certificates: list[Certificate]

    def with_audit(self, audit: bytes) -> Documents:
        return replace(self.documents, log=audit)

    @property
    def lines(self) -> list[bytes]:
        return self.documents.log.splitlines(keepends=True)


def issue(audit: bytes, key: bytes, *users: str) -> list[Certificate]:
    asked = erased(*map(Request, users), rerun=(1,), data_before="", utility_before=None)
    held = handmade()
    outcome = Outcome(held.state, {"numpy": "1.0"}, STAMP, head_of(audit), None, "", None)
    return issue_certificates(asked, outcome, key)


def forget_record(audit: bytes, certificates: list[Certificate]) -> bytes:
    held = handmade()
    steps = [step.model_dump() for step in certified_steps(held.state, held.checkpoints, STAMP.salt, (1,))]
    facts = {"version": 2, "state": state_digest(STAMP.salt, held.state), "steps": steps}
    return add_record(audit, "forget", facts | {"certificates": {one.request_id: one.digest() for one in certificates}})


def resigned(certificate: Certificate, key: bytes, **changes) -> Certificate:
    """Return a certificate that says something else, signed again."""
    said = Statement.model_validate_json(certificate.content).model_copy(update=changes)
    return read_certificate(said.signed(key))


@pytest.fixture(scope="module")
def shop() -> Service:
    key = new_key()
    audit = add_record(add_record(b"", "learn", {"version": 1}), "verify", {"version": 1})
    certificates = issue(audit, key, "dan", "eve")
    issued = {f"{one.request_id}.json": one.content for one in certificates}
    pages = {name.replace(".json", ".html"): b"a page" for name in issued}
    return Service(Documents(forget_record(audit, certificates), key), issued | pages, certificates)


@pytest.fixture(scope="module")
def name(shop) -> str:
    """The file of the first certificate."""
    return f"{shop.certificates[0].request_id}.json"


def without(issued, *names):
    return {name: content for name, content in issued.items() if name not in names}


class TestPapers:
    def test_that_belong_together_have_no_fault(self, shop):
        assert documents_fault(shop.documents, shop.issued) is None
        assert documents_fault(Documents(add_record(b"", "learn", {"version": 1}), new_key()), {}) is None

    def test_a_certificate_that_was_removed(self, shop, name):
        expected = f"certificates/{name} is missing: the log names it"
        assert documents_fault(shop.documents, without(shop.issued, name)) == expected

    def test_a_certificate_that_was_changed(self, shop, name):
        changed = shop.issued[name].replace(b'"version":2', b'"version":3')
        found = documents_fault(shop.documents, shop.issued | {name: changed})
        assert found.startswith(f"certificates/{name}: its signature does not fit")

    def test_a_certificate_that_was_changed_and_signed_again_by_whoever_holds_the_key(self, shop, name):
        changed = resigned(shop.certificates[0], shop.documents.key, threads=99)
        found = documents_fault(shop.documents, shop.issued | {name: changed.content})
        assert found == f"certificates/{name} is not the one that the log names"

    def test_a_certificate_that_no_record_names(self, shop):
        (added,) = issue(shop.documents.log, shop.documents.key, "fay")
        found = documents_fault(shop.documents, shop.issued | {f"{added.request_id}.json": added.content})
        assert found == f"certificates/{added.request_id}.json is not the one that the log names"

    def test_a_certificate_put_in_the_place_of_another(self, shop, name):
        other = shop.certificates[1].content
        assert documents_fault(shop.documents, shop.issued | {name: other}).startswith("certificates/")

    def test_another_key(self, shop):
        found = documents_fault(replace(shop.documents, key=new_key()), shop.issued)
        assert found.startswith("certificates/")
        assert found.endswith("was signed with another key")
        assert documents_fault(replace(shop.documents, key=b""), shop.issued) == found

    @pytest.mark.parametrize("number", [1, 2])
    def test_a_record_that_was_removed(self, shop, number):
        left = b"".join(shop.lines[: number - 1] + shop.lines[number:])
        expected = f"the log: record {number} is missing: record {number + 1} stands in its place"
        assert documents_fault(shop.with_audit(left), shop.issued) == expected

    @pytest.mark.parametrize(("kept", "said"), [(0, "after number 0"), (1, "after number 1")])
    def test_records_that_a_certificate_names_and_that_were_cut_off(self, shop, kept, said):
        found = documents_fault(shop.with_audit(b"".join(shop.lines[:kept])), shop.issued)
        assert found == f"the log: the records {said} are missing: a certificate names record 2"

    def test_the_record_of_the_erasure_itself_cut_off(self, shop):
        first = min(one.request_id for one in shop.certificates)
        found = documents_fault(shop.with_audit(b"".join(shop.lines[:2])), shop.issued)
        assert found == f"certificates/{first}.json is not the one that the log names"

    @pytest.mark.parametrize("first", [1, 2])
    def test_a_chain_made_anew_with_the_right_certificates(self, shop, first):
        anew = b"".join(shop.lines[: first - 1])
        for _ in range(first, 3):
            anew = add_record(anew, "learn", {"made": "up"})
        found = documents_fault(shop.with_audit(forget_record(anew, shop.certificates)), shop.issued)
        assert found == "the log: record 2 is not the one that a certificate names: the log was rewritten"


class TestVersion:
    @pytest.fixture
    def state(self):
        return handmade().state

    def test_the_last_record_is_about_the_current_version(self, shop, state):
        assert version_fault(shop.documents, STAMP, state) is None

    @pytest.mark.parametrize("version", [1, 3])
    def test_an_older_or_newer_version_was_put_back(self, shop, state, version):
        found = version_fault(shop.documents, Stamp(version, STAMP.salt), state)
        assert found == f"the workspace is at version {version}, its last record at 2: one was restored from a copy"

    def test_other_checkpoints_were_put_there(self, shop, state):
        expected = "the checkpoints of version 2 are not those that were recorded"
        other = replace(state, chain=(state.chain[0], replace(state.chain[1], fingerprint="other")))
        assert version_fault(shop.documents, STAMP, other) == expected
        assert version_fault(shop.documents, Stamp(2, "cd" * 32), state) == expected

    def test_a_verification_that_began_before_and_ended_after_puts_nothing_back(self, shop, state):
        late = add_record(shop.documents.log, "verify", {"version": 1, "state": "of version 1"})
        assert version_fault(shop.with_audit(late), STAMP, state) is None

    def test_a_verification_does_not_hide_that_a_version_was_put_back(self, shop, state):
        verified = add_record(shop.documents.log, "verify", {"version": 1, "state": state_digest(STAMP.salt, state)})
        assert version_fault(shop.with_audit(verified), Stamp(1, STAMP.salt), state).endswith(
            "one was restored from a copy"
        )

    def test_where_nothing_is_recorded_nothing_contradicts(self, state):
        assert version_fault(Documents(), STAMP, state) is None


class TestCertificate:
    def fault(self, shop, certificate, **changes) -> str | None:
        facts = {"documents": shop.documents, "issued": shop.issued, "stamp": STAMP} | changes
        return certificate_fault(certificate, **facts)

    def test_of_this_workspace(self, shop):
        assert [self.fault(shop, one) for one in shop.certificates] == [None, None]
        assert self.fault(shop, shop.certificates[0], stamp=Stamp(9, "cd" * 32)) is None

    def test_of_another_workspace(self, shop):
        (other,) = issue(shop.documents.log, new_key(), "dan")
        expected = "the certificate was signed with another key: it is of another workspace"
        assert self.fault(shop, other) == expected
        assert self.fault(shop, shop.certificates[0], issued={}, documents=replace(shop.documents, key=b"")) == expected

    def test_of_a_later_version_than_the_workspace_has(self, shop, name):
        found = self.fault(shop, shop.certificates[0], issued={}, stamp=Stamp(1, "cd" * 32))
        assert found.startswith("the workspace is at version 1 and the certificate is of version 2")
        assert "an older copy of the workspace was restored; erase again" in found

    def test_that_was_removed(self, shop, name):
        found = self.fault(shop, shop.certificates[0], issued=without(shop.issued, name))
        assert found == "the workspace does not have this certificate: it was removed there"

    def test_that_was_changed_and_signed_again_by_whoever_holds_the_key(self, shop):
        changed = resigned(shop.certificates[0], shop.documents.key, threads=99)
        found = self.fault(shop, changed)
        assert found.startswith(
            "the workspace has another certificate for the same request: one of the two was changed"
        )


class TestRecords:
    def test_an_erasure_is_found_by_its_request_wherever_its_record_is(self, shop):
        ids = [one.request_id for one in shop.certificates]
        sealed = replace(shop.documents, log=b"", sealed_records=lambda: shop.documents.log)
        for documents in (shop.documents, sealed):
            found = records_about([*ids, "0" * 32], documents)
            assert {*found} == {*ids}
            assert {record["what"] for record in found.values()} == {"forget"}

    def test_all_records_are_read_only_if_the_last_ones_do_not_have_it(self, shop):
        def refuse() -> bytes:
            raise AssertionError

        assert records_about([shop.certificates[0].request_id], replace(shop.documents, sealed_records=refuse))


class TestOutcome:
    def fault(self, certificate, held=None, stamp=STAMP, record=None) -> str | None:
        held = held or handmade()
        environment = certificate.environment
        fault = held_fault(certificate, held.state, stamp, environment)
        return fault or chain_fault(certificate, record, held.state, held.checkpoints, stamp)

    @pytest.fixture
    def record(self, shop) -> dict:
        one = shop.certificates[0].request_id
        return records_about([one], shop.documents)[one]

    def test_another_environment(self, shop):
        certificate, held = shop.certificates[0], handmade()
        found = held_fault(certificate, held.state, STAMP, certificate.environment | {"numpy": "0.0"})
        assert found == "the numeric environment held is not what the certificate names"

    @pytest.mark.parametrize("name", ["erasable", "kernels"])
    def test_another_version_of_ours_is_no_other_environment(self, shop, name):
        old = shop.certificates[0].model_copy(update={"environment": {"numpy": "1.0", name: "as in 0.1"}})
        for environment in ({"numpy": "1.0"}, {"numpy": "1.0", name: "as it is now"}):
            assert held_fault(old, handmade().state, STAMP, environment) is None

    @pytest.mark.parametrize("field", ["settings", "catalogue", "rating_scale"])
    def test_another_setting(self, shop, field):
        other = {"settings": {"epochs": 77}, "rating_scale": (0.0, 99.0)}
        other["catalogue"] = shop.certificates[0].catalogue.model_copy(update={"declared": False})
        found = self.fault(shop.certificates[0].model_copy(update={field: other[field]}))
        assert found == f"the {field.replace('_', ' ')} held is not what the certificate names"

    def test_the_revision_of_the_model_is_compared_where_it_is_named(self, shop):
        (certificate, *_) = shop.certificates
        assert certificate.revision == NMF.revision
        assert self.fault(certificate.model_copy(update={"revision": None})) is None
        other = certificate.model_copy(update={"revision": NMF.revision + 1})
        assert self.fault(other) == "the model's revision held is not what the certificate names"

    def test_settings_are_compared_as_far_as_both_have_them(self, shop):
        named = shop.certificates[0].settings
        for settings in ({}, {"model": named["model"]}, named | {"one_that_was_dropped": 1}):
            assert self.fault(shop.certificates[0].model_copy(update={"settings": settings})) is None

    def with_step(self, record, place: int, **changes) -> dict:
        steps = [dict(step) for step in record["steps"]]
        steps[place] |= changes
        return {**record, "steps": steps}

    def test_of_the_current_version(self, shop, record):
        assert [self.fault(one, record=record) for one in shop.certificates] == [None, None]

    def test_of_another_version_can_not_be_compared_any_more(self, shop, record):
        wrong = self.with_step(record, 0, digest="00" * 32)
        assert self.fault(shop.certificates[0], record=wrong) is not None
        for stamp in (Stamp(1, STAMP.salt), Stamp(3, STAMP.salt)):
            assert self.fault(shop.certificates[0], stamp=stamp, record=wrong) is None

    def test_other_data(self, shop):
        held = handmade()
        less = held.state.dataset.with_groups(held_out=held.state.dataset.held_out.without(users=["cat"]))
        found = self.fault(shop.certificates[0], replace(held, state=replace(held.state, dataset=less)))
        assert found == "the data held is not what the certificate names"

    def test_another_salt_under_the_same_number(self, shop):
        assert self.fault(shop.certificates[0], stamp=Stamp(2, "cd" * 32)) is not None

    @pytest.mark.parametrize("place", [0, 1])
    @pytest.mark.parametrize("field", ["parent", "digest", "result"])
    def test_another_stage(self, shop, record, place, field):
        wrong = self.with_step(record, place, **{field: "00" * 32})
        said = f"stage {place + 1} is not the one that"
        assert self.fault(shop.certificates[0], record=wrong) == f"{said} its record names"
        of_format_2 = shop.certificates[0].model_copy(update={"chain": recorded_steps(wrong)})
        assert self.fault(of_format_2, record=record) == f"{said} the certificate names"

    @pytest.mark.parametrize("name", ["one", "two"])
    def test_one_other_number_in_a_checkpoint(self, shop, record, name):
        held = handmade()
        old = held.checkpoints.get(name)
        arrays = {array: values.copy() for array, values in old.arrays().items()}
        arrays["rows.user"][0, 0] = np.nextafter(arrays["rows.user"][0, 0], np.float32(9))
        held.checkpoints.put(Checkpoint.from_arrays(name, old.parent, arrays))
        stage = {"one": 1, "two": 2}[name]
        found = self.fault(shop.certificates[0], held, record=record)
        assert found == f"stage {stage} is not the one that its record names"

    @pytest.mark.parametrize("steps", [0, 1, 3])
    def test_a_chain_of_another_length(self, shop, record, steps):
        wrong = {**record, "steps": [*record["steps"], record["steps"][1]][:steps]}
        assert self.fault(shop.certificates[0], record=wrong) == "the chain has another length than certified"
