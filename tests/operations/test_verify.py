"""Verify, in memory and on disk: documents first, then a replay of what an erasure trained again, or of all."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from erasable import fingerprint
from erasable.chain import Checkpoint, Config, Sisa
from erasable.errors import NewerDocument, WrongUse
from erasable.models.registry import make_model
from erasable.operations import Claim, DiskStorage, Work, forget, learn, verify
from erasable.proof import add_record, records_of
from erasable.proof.certificate import canonical, sign
from erasable.proof.log import RECORD_FIELDS
from erasable.requests import Request
from erasable.workspace.checkpoints import encode_checkpoint
from erasable.workspace.manifest import Manifest, decode_manifest, encode_manifest
from kit import elsewhere
from kit.fitting import fitting


def user_at(storage, position: int, row: int = 0) -> str:
    with storage.reading() as session:
        return session.state().dataset.groups[position].users[row]


def written(storage, folder: Path, certificate: str) -> Path:
    """Return a certificate as a file, outside the storage."""
    with storage.reading() as session:
        content = session.issued()[Path(certificate).name]
    path = folder / f"copy-of-{Path(certificate).name}"
    path.write_bytes(content)
    return path


def forgotten(storage, folder: Path, *users: str) -> Path:
    """Forget users and return the certificate of the first."""
    return written(storage, folder, forget(storage, [Request(user) for user in users]).certificates[0])


def reseal(path: Path, **changes) -> Manifest:
    """Change a manifest, and its hashes with it, like someone who knows how."""
    manifest = decode_manifest((path / "manifest.json").read_bytes(), "manifest.json").model_copy(update=changes)
    hashes = {name: fingerprint.of_bytes((path / name).read_bytes()) for name in manifest.files}
    sealed = manifest.model_copy(update={"files": hashes}).sealed()
    (path / "manifest.json").write_bytes(encode_manifest(sealed))
    return sealed


def with_one_other_number(checkpoint: Checkpoint, array: str, by: float) -> Checkpoint:
    arrays = {name: values.copy() for name, values in checkpoint.arrays().items()}
    arrays[array].flat[0] += by
    return Checkpoint.from_arrays(checkpoint.fingerprint, checkpoint.parent, arrays)


@pytest.fixture
def disk(learned, copied, tmp_path) -> DiskStorage:
    """A workspace that has learned, and that may be changed."""
    return DiskStorage(copied(learned, tmp_path / "shop"))


@pytest.fixture
def stages_trained(monkeypatch, config):
    """Count the stages that are trained from here on."""
    model, positions = type(make_model(config)), []
    train = model.train

    def counting(self, shared, stage, effort):
        positions.append(stage.position)
        return train(self, shared, stage, effort)

    monkeypatch.setattr(model, "train", counting)
    return positions


class TestIdentical:
    def test_what_was_learned_and_what_was_forgotten(self, storage):
        first = verify(storage)
        assert (first.identical, first.compared, first.stages_replayed, first.recorded) == (True, 30, 3, True)
        assert first.reason == "a replay from scratch on the data that is left gives the same bytes"
        forget(storage, [Request("bob"), Request("cat", ("b",))])
        assert verify(storage) == first

    def test_on_any_number_of_threads(self, storage):
        assert [verify(storage, work=Work(threads)).identical for threads in (1, 2, 3)] == [True] * 3

    @pytest.mark.parametrize("settings", [{"strategy": "sisa"}, {"policy": "regroup"}, {"grouping": "independent"}])
    def test_under_other_settings(self, table, tmp_path, settings):
        learn(table, tmp_path / "shop", Config(**fitting({"groups": 3, "epochs": 3, "batch": 16} | settings)))
        storage = DiskStorage(tmp_path / "shop")
        path = forgotten(storage, tmp_path, "ann")
        for claim in (Claim(), Claim(path), Claim(path, from_scratch=True)):
            assert verify(storage, claim).identical is True


class TestHowMuchIsReplayed:
    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_with_a_certificate_the_stages_that_its_erasure_has_trained(
        self, storage, tmp_path, position, stages_trained
    ):
        path = forgotten(storage, tmp_path, user_at(storage, position))
        stages_trained.clear()
        found = verify(storage, Claim(path))
        assert stages_trained == [*range(position, 3)]
        assert (found.identical, found.stages_replayed, found.compared) == (True, 3 - position, 10 * (3 - position))
        how = "from scratch" if position == 0 else f"of {3 - position} of 3 steps, from the checkpoint before,"
        assert found.reason == f"the certificate agrees; a replay {how} on the data that is left gives the same bytes"

    def test_everything_if_it_is_asked_for_or_without_a_certificate(self, storage, tmp_path, stages_trained):
        path = forgotten(storage, tmp_path, user_at(storage, 2))
        for claim in (Claim(path, from_scratch=True), Claim()):
            stages_trained.clear()
            found = verify(storage, claim)
            assert stages_trained == [0, 1, 2]
            assert (found.identical, found.stages_replayed, found.compared) == (True, 3, 30)

    def test_of_sisa_only_the_groups_that_were_hit(self, table, config, tmp_path, stages_trained):
        learn(table, tmp_path / "shop", config.changed(strategy=Sisa(**config.learning.settings.model_dump())))
        storage = DiskStorage(tmp_path / "shop")
        path = forgotten(storage, tmp_path, user_at(storage, 0), user_at(storage, 2))
        stages_trained.clear()
        found = verify(storage, Claim(path))
        assert sorted(stages_trained) == [0, 2]
        assert (found.identical, found.stages_replayed, found.compared) == (True, 2, 20)

    def test_of_groups_that_are_decided_anew_everything(self, table, tmp_path, stages_trained):
        learn(table, tmp_path / "shop", Config(model="nmf", groups=3, epochs=3, batch=16, policy="regroup"))
        storage = DiskStorage(tmp_path / "shop")
        path = forgotten(storage, tmp_path, user_at(storage, 2))
        stages_trained.clear()
        assert verify(storage, Claim(path)).stages_replayed == 3
        assert sorted(stages_trained) == [0, 1, 2]

    def test_with_a_certificate_whose_erasure_has_trained_nothing_something_all_the_same(self, storage, tmp_path):
        with storage.reading() as session:
            held_out = session.state().dataset.held_out
            user, item = held_out.users[0], held_out.items[int(held_out.item_index[0])]
        done = forget(storage, [Request(user, (item,))])
        assert done.stages_rerun == 0
        found = verify(storage, Claim(written(storage, tmp_path, done.certificates[0])))
        assert found.identical is True
        assert found.compared > 0

    def test_how_far_it_is_is_told(self, storage, tmp_path, reporter):
        path = forgotten(storage, tmp_path, user_at(storage, 2))
        verify(storage, Claim(path), Work(1, reporter))
        ((label, samples),) = reporter.work
        assert label == "replaying"
        assert reporter.done == samples > 0


class TestDifferent:
    @pytest.mark.parametrize("array", ["rows.user", "shared.item"])
    def test_one_other_number_and_by_how_much(self, storage, array):
        with storage.writing() as session:
            state = session.state()
            changed = with_one_other_number(session.checkpoints.get(state.chain[1].fingerprint), array, 0.25)
            size = changed.arrays()[array].size
            session.checkpoints.put(changed)
            session.commit(state, session.documents(), session.stamp)
        found = verify(storage)
        assert (found.identical, found.compared, found.recorded) == (False, 30, True)
        assert found.reason == f"stage 2: {array} differs in 1 of {size} numbers, by at most 0.25"

    def test_one_other_byte_in_a_file_whose_manifest_was_sealed_again(self, disk, tmp_path):
        path = forgotten(disk, tmp_path, user_at(disk, 1))
        with disk.reading() as session:
            link = session.state().chain[2]
            old = session.checkpoints.get(link.fingerprint)
            file = disk.path / session.checkpoints.file_of(link.fingerprint)
        arrays = safetensors.numpy.load(file.read_bytes())
        arrays["rows.user"].view(np.uint8).flat[0] ^= 1
        file.write_bytes(encode_checkpoint(Checkpoint.from_arrays(old.fingerprint, old.parent, arrays)))
        assert verify(disk).reason.startswith("damaged or missing: checkpoints/")
        reseal(disk.path)
        found = verify(disk)
        assert (found.identical, found.compared) == (False, 30)
        assert found.reason.startswith("stage 3: rows.user differs in 1 of ")
        assert "by at most" in found.reason
        certified = verify(disk, Claim(path))
        assert (certified.identical, certified.compared) == (False, 0)
        assert certified.reason == "stage 3 is not the one that its record names"

    def test_a_checkpoint_before_the_tail_counts_even_if_only_the_tail_is_replayed(self, storage, tmp_path):
        first = forgotten(storage, tmp_path, user_at(storage, 2))
        forget(storage, [Request(user_at(storage, 2))])
        with storage.writing() as session:
            state = session.state()
            changed = with_one_other_number(session.checkpoints.get(state.chain[1].fingerprint), "shared.item", 0.25)
            session.checkpoints.put(changed)
            session.commit(state, session.documents(), session.stamp)
        # The certificate is of a version that is gone: nothing but the replay can tell.
        found = verify(storage, Claim(first))
        assert (found.identical, found.stages_replayed) == (False, 1)
        assert found.reason.startswith("stage 3: ")

    def test_other_data_than_recorded_whose_manifest_was_sealed_again(self, table, as_table, ratings, config, tmp_path):
        learn(table, tmp_path / "shop", config)
        changed = as_table(ratings | {"ann": {"a": 4, "b": 4, "c": 1}})
        learn(changed, tmp_path / "other", config)
        theirs = {path.name.rpartition("-")[0]: path for path in (tmp_path / "other" / "data").iterdir()}
        for path in (tmp_path / "shop" / "data").iterdir():
            path.write_bytes(theirs[path.name.rpartition("-")[0]].read_bytes())
        reseal(tmp_path / "shop")
        found = verify(DiskStorage(tmp_path / "shop"))
        assert (found.identical, found.reason) == (False, "the data of version 1 are not those that were recorded")


class TestAnotherNumericEnvironment:
    @pytest.mark.parametrize("storage", ["memory"], indirect=True)
    def test_can_not_be_told_and_what_differs_is(self, storage):
        elsewhere.moved_in_memory(storage, machine="abacus")
        found = verify(storage)
        assert (found.identical, found.compared, found.stages_replayed) == (None, 0, 0)
        assert "it was learned in another numeric environment: machine is " in found.reason
        assert "was abacus" in found.reason

    def test_one_that_the_newest_certificate_does_not_name_was_put_there(self, disk, tmp_path):
        path = forgotten(disk, tmp_path, "ann")
        elsewhere.moved(disk.path, numpy="0.0", processor="abacus")
        for claim in (Claim(), Claim(path)):
            found = verify(disk, claim)
            assert (found.identical, found.compared) == (False, 0)
            assert found.reason == "the numeric environment held is not what the certificate names"

    def test_what_is_wrong_with_the_documents_is_told_all_the_same(self, disk, tmp_path):
        path = forgotten(disk, tmp_path, "ann")
        manifest = elsewhere.moved(disk.path, numpy="0.0")
        (disk.path / manifest.chain[0].file).write_bytes(b"damaged")
        assert verify(disk, Claim(path)).identical is False


class TestCertificates:
    def test_are_recognised_by_their_bytes(self, storage, tmp_path):
        right = forgotten(storage, tmp_path, "bob")
        (tmp_path / "wrong.json").write_bytes(right.read_bytes() + b" ")
        assert verify(storage, Claim(right)).identical is True
        wrong = verify(storage, Claim(tmp_path / "wrong.json"))
        assert (wrong.identical, wrong.compared) == (False, 0)
        assert wrong.reason.startswith(f"{tmp_path / 'wrong.json'}: its signature does not fit")
        with pytest.raises(WrongUse, match=r"nowhere.json: can't be read: give a file that forget made"):
            verify(storage, Claim(tmp_path / "nowhere.json"))

    def test_of_every_person_of_one_call_hold(self, storage, tmp_path):
        done = forget(storage, [Request("ann"), Request("bob", ("a",)), Request("cat")])
        for place in done.certificates:
            assert verify(storage, Claim(written(storage, tmp_path, place))).identical is True

    def test_of_earlier_erasures_still_hold_after_later_ones(self, storage, tmp_path):
        paths = [forgotten(storage, tmp_path, user_at(storage, position)) for position in (2, 0, 1)]
        for path, replayed in zip(paths, (1, 3, 2), strict=True):
            found = verify(storage, Claim(path))
            assert (found.identical, found.stages_replayed) == (True, replayed)

    def test_of_another_workspace_are_refused(self, storage, table, config, tmp_path):
        learn(table, tmp_path / "other", config)
        path = forgotten(DiskStorage(tmp_path / "other"), tmp_path, "ann")
        forget(storage, [Request("ann")])
        with pytest.raises(WrongUse, match="signed with another key: it is of another workspace; name the folder"):
            verify(storage, Claim(path))

    def test_newer_than_the_folder_show_that_an_older_one_was_put_back(self, disk, copied, tmp_path):
        copied(disk.path, tmp_path / "backup")
        path = forgotten(disk, tmp_path, "ann")
        shutil.rmtree(disk.path)
        copied(tmp_path / "backup", disk.path)
        assert verify(disk).reason.startswith("what was erased is held again (people: 1, single interactions: 0)")
        shutil.rmtree(disk.path.with_name("shop.do-not-learn"))
        assert verify(disk).identical is None  # whether it is the newest can't be told by itself
        found = verify(disk, Claim(path))
        assert (found.identical, found.compared) == (False, 0)
        assert (
            "version 1 and the certificate is of version 2: an older copy of the workspace was restored" in found.reason
        )

    def test_newer_than_a_folder_that_went_on_from_an_older_one_are_refused_too(self, disk, copied, tmp_path):
        copied(disk.path, tmp_path / "backup")
        path = forgotten(disk, tmp_path, "ann")
        shutil.rmtree(disk.path)
        copied(tmp_path / "backup", disk.path)
        forget(disk, [Request("bob")])
        assert verify(disk, Claim(path)).identical is False

    def test_that_were_removed_are_missed(self, disk, tmp_path):
        path = forgotten(disk, tmp_path, "ann")
        name = path.name.removeprefix("copy-of-")
        (disk.path / "certificates" / name).unlink()
        found = verify(disk)
        assert (found.identical, found.compared) == (False, 0)
        assert found.reason.startswith(
            f"damaged or missing: certificates/{name} (if an older manifest.json was put back"
        )

    def test_that_were_removed_and_left_out_of_a_manifest_sealed_again_are_missed(self, disk, tmp_path):
        path = forgotten(disk, tmp_path, "ann")
        name = path.name.removeprefix("copy-of-")
        (disk.path / "certificates" / name).unlink()
        manifest = decode_manifest((disk.path / "manifest.json").read_bytes(), "manifest.json")
        files = {file: digest for file, digest in manifest.files.items() if not file.endswith(name)}
        kept = tuple(one for one in manifest.certificates if one != name)
        reseal(disk.path, certificates=kept, files=files)
        found = verify(disk)
        assert (found.identical, found.compared) == (False, 0)
        assert found.reason == f"certificates/{name} is missing: the log names it"
        assert verify(disk, Claim(path)).identical is False

    def test_that_were_changed_are_refused(self, storage, tmp_path):
        path = forgotten(storage, tmp_path, "ann")
        facts = json.loads(path.read_bytes())
        facts["days"]["asked"] = "2020-01-01"
        changed = tmp_path / "changed.json"
        changed.write_bytes(canonical(facts))
        found = verify(storage, Claim(changed))
        assert (found.identical, found.compared) == (False, 0)
        assert "its signature does not fit" in found.reason


class TestCertificatesOfANewerVersion:
    def newer(self, storage, path: Path, **more) -> Path:
        """Write a certificate that says more, as a newer version would, into a workspace that knows it."""
        said = json.loads(path.read_bytes()) | more | {"signature": ""}
        with storage.writing() as session:
            documents = session.documents()
            unsigned = canonical(said)
            content = unsigned.replace(b'"signature":""', f'"signature":"{sign(documents.key, unsigned)}"'.encode())
            *before, last = records_of(documents.log)
            facts = {name: value for name, value in last.items() if name not in RECORD_FIELDS}
            facts["certificates"] = {said["request_id"]: fingerprint.of_bytes(content)}
            log = b"".join(canonical(record) + b"\n" for record in before)
            named = {f"{said['request_id']}.json": content}
            session.amend(replace(documents, log=add_record(log, "forget", facts), certificates=named))
        return written(storage, path.parent, f"{said['request_id']}.json")

    @pytest.mark.parametrize("more", [{"more": [1]}, {"data": {"before": "ab", "more": None}}], ids=str)
    @pytest.mark.parametrize("storage", ["memory"], indirect=True)
    def test_are_verified_and_it_is_said_that_they_are_newer(self, storage, tmp_path, more):
        path = forgotten(storage, tmp_path, user_at(storage, 1))
        said = json.loads(path.read_bytes())
        if "data" in more:
            more = {"data": said["data"] | more["data"]}
        path = self.newer(storage, path, **more)
        found = verify(storage, Claim(path))
        assert (found.identical, found.stages_replayed) == (True, 2)
        assert "a newer version wrote the certificate, with something that this one does not know" in found.reason

    @pytest.mark.parametrize("storage", ["memory"], indirect=True)
    def test_in_a_newer_format_get_no_verdict(self, storage, tmp_path):
        path = self.newer(storage, forgotten(storage, tmp_path, user_at(storage, 1)), format=4)
        for claim in (Claim(path), Claim()):
            with pytest.raises(NewerDocument, match=r"\.json: it has the format 4 .* a later version wrote it"):
                verify(storage, claim)

    @pytest.mark.parametrize("storage", ["memory"], indirect=True)
    def test_of_which_the_log_names_no_steps_have_everything_replayed(self, storage, tmp_path):
        path = forgotten(storage, tmp_path, user_at(storage, 2))
        assert verify(storage, Claim(path)).stages_replayed == 1
        with storage.writing() as session:
            documents = session.documents()
            *before, forget_record, _ = records_of(documents.log)
            facts = {name: value for name, value in forget_record.items() if name not in (*RECORD_FIELDS, "steps")}
            log = b"".join(canonical(record) + b"\n" for record in before)
            session.amend(replace(documents, log=add_record(log, "forget", facts)))
        found = verify(storage, Claim(path))
        assert (found.identical, found.stages_replayed) == (True, 3)


class TestOtherDocumentsOfANewerVersion:
    def test_a_record_is_verified_and_it_is_said_that_it_is_newer(self, storage):
        with storage.writing() as session:
            documents = session.documents()
            session.amend(replace(documents, log=add_record(documents.log, "verify", {"more": {"deep": [1]}})))
        found = verify(storage)
        assert found.identical is True
        assert found.reason.startswith("a newer version wrote the log, with something that this one does not know; ")

    @pytest.mark.parametrize("storage", ["memory"], indirect=True)
    def test_a_record_in_a_newer_format_gets_no_verdict(self, storage):
        with storage.writing() as session:
            documents = session.documents()
            record = json.loads(add_record(documents.log, "verify", {}).splitlines()[-1]) | {"format": 3}
            session.amend(replace(documents, log=documents.log + canonical(record) + b"\n"))
        with pytest.raises(NewerDocument, match=r"log: record 2 has the format 3 .* a later version wrote it"):
            verify(storage)

    @pytest.mark.parametrize("storage", ["disk"], indirect=True)
    @pytest.mark.parametrize("place", ["manifest", "scale", "preferences"])
    def test_a_manifest_is_verified_and_it_is_said_that_it_is_newer(self, storage, place):
        with storage.reading() as session:
            manifest = session.manifest
        part = manifest if place == "manifest" else getattr(manifest, place)
        part = part.model_copy(update={"more": {"deep": [1]}})
        reseal(storage.path, **({"more": 1} if place == "manifest" else {place: part}))
        for _ in range(2):  # the first one rewrites it
            found = verify(storage)
            assert found.identical is True
            assert found.reason.startswith("a newer version wrote the manifest, with something that this one does")

    @pytest.mark.parametrize("storage", ["memory"], indirect=True)
    def test_a_receipt_is_verified_and_it_is_said_that_it_is_newer(self, storage, tmp_path):
        done = forget(storage, [Request(user_at(storage, 1))])
        receipt = tmp_path / "receipt.json"
        receipt.write_bytes(canonical(json.loads(done.receipts[0].encoded()) | {"more": {"deep": [1]}}))
        found = verify(storage, Claim(written(storage, tmp_path, done.certificates[0]), receipt))
        assert found.identical is True
        assert "a newer version wrote the receipt, with something that this one does not know; " in found.reason


class TestReceipts:
    @pytest.fixture
    def documents(self, storage, tmp_path) -> list[tuple[Path, Path]]:
        """Certificates and receipts of two people."""
        done = forget(storage, [Request("ann"), Request("bob", ("a",))])
        for receipt in done.receipts:
            (tmp_path / f"receipt-{receipt.user_id}").write_bytes(receipt.encoded())
        receipts = [tmp_path / f"receipt-{receipt.user_id}" for receipt in done.receipts]
        return [
            (written(storage, tmp_path, one), other) for one, other in zip(done.certificates, receipts, strict=True)
        ]

    def test_show_whom_a_certificate_is_about(self, storage, documents):
        for certificate, receipt in documents:
            assert verify(storage, Claim(certificate, receipt)).identical is True

    def test_of_someone_else_are_refused(self, storage, documents):
        (certificate, _), (_, receipt) = documents
        found = verify(storage, Claim(certificate, receipt))
        assert (found.identical, found.compared) == (False, 0)
        assert found.reason == f"{receipt} does not belong to {certificate}"

    @pytest.mark.parametrize("change", [{"user_id": "cat"}, {"items": ["a"]}, {"salt": "00" * 32}, {"salt": "wrong"}])
    def test_that_were_changed_are_refused(self, storage, documents, change):
        certificate, receipt = documents[0]
        receipt.write_text(json.dumps(json.loads(receipt.read_bytes()) | change))
        found = verify(storage, Claim(certificate, receipt))
        assert (found.identical, found.compared) == (False, 0)
        assert str(receipt) in found.reason

    def test_need_their_certificate(self, storage, documents):
        with pytest.raises(WrongUse, match="receipt needs certificate"):
            verify(storage, Claim(receipt=documents[0][1]))


class TestWhatIsCheckedBeforeAnythingIsReplayed:
    @pytest.fixture(autouse=True)
    def no_replay(self, monkeypatch):
        operation = sys.modules[verify.__module__]
        monkeypatch.setattr(operation, "replay", lambda *_: pytest.fail("it was loaded and replayed"))

    def test_a_record_that_was_changed_is_named(self, disk):
        forget(disk, [Request("ann")])
        (audit,) = disk.path.glob("audit-*.jsonl")
        audit.write_bytes(audit.read_bytes().replace(b'"version":2', b'"version":3'))
        found = verify(disk)
        assert (found.identical, found.compared) == (False, 0)
        assert found.reason == f"damaged or missing: {audit.name}; the log: record 2 was changed"

    def test_records_that_were_cut_off_are_said_to_be(self, disk):
        forget(disk, [Request("ann")])
        (audit,) = disk.path.glob("audit-*.jsonl")
        audit.write_bytes(audit.read_bytes().splitlines(keepends=True)[0])
        assert verify(disk).reason.endswith("the log: records at its end are missing")

    def test_an_audit_chain_that_is_missing_is_named(self, disk):
        (audit,) = disk.path.glob("audit-*.jsonl")
        audit.unlink()
        found = verify(disk)
        assert (found.identical, found.compared) == (False, 0)
        assert audit.name in found.reason

    def test_a_record_that_was_changed_in_a_folder_that_was_sealed_again(self, disk):
        forget(disk, [Request("ann")])
        (audit,) = disk.path.glob("audit-*.jsonl")
        audit.write_bytes(b"".join(audit.read_bytes().splitlines(keepends=True)[1:]))
        reseal(disk.path)
        assert verify(disk).reason == "the log: record 1 is missing: record 2 stands in its place"

    def test_a_folder_put_together_from_two_versions_and_sealed_again(self, disk, copied, tmp_path):
        old = DiskStorage(copied(disk.path, tmp_path / "old"))
        forget(disk, [Request("ann")])
        manifest = decode_manifest((old.path / "manifest.json").read_bytes(), "manifest.json")
        (audit,) = disk.path.glob("audit-*.jsonl")
        shutil.copy(audit, old.path / manifest.audit)
        for path in (disk.path / "certificates").iterdir():
            copied_to = old.path / "certificates"
            copied_to.mkdir(exist_ok=True)
            shutil.copy(path, copied_to)
        names = tuple(sorted(path.name for path in (old.path / "certificates").iterdir()))
        files = manifest.files | {f"certificates/{name}": "" for name in names}
        reseal(old.path, certificates=names, files=files)
        found = verify(old)
        assert (found.identical, found.compared) == (False, 0)
        assert found.reason == "the workspace is at version 1, its last record at 2: one was restored from a copy"

    def test_a_manifest_that_was_changed(self, disk):
        path = disk.path / "manifest.json"
        path.write_bytes(path.read_bytes().replace(b'"version": 1', b'"version": 2'))
        found = verify(disk)
        assert (found.identical, found.compared) == (False, 0)
        assert "manifest.json is damaged" in found.reason

    @pytest.mark.parametrize("storage", ["memory"], indirect=True)
    def test_documents_in_memory(self, storage):
        forget(storage, [Request("ann")])
        with storage.writing() as session:
            documents = session.documents()
            session.amend(replace(documents, log=documents.log.replace(b'"version":2', b'"version":3')))
        assert verify(storage).reason == "the log: record 2 was changed"


class TestPapersExchanged:
    def test_a_page_that_was_edited_is_noticed_though_the_manifest_was_sealed_again(self, disk, tmp_path):
        forgotten(disk, tmp_path, "ann")
        (page,) = disk.path.glob("certificates/*.html")
        page.write_bytes(page.read_bytes().replace(b"was erased", b"is kept"))
        reseal(disk.path)
        found = verify(disk)
        assert (found.identical, found.compared) == (False, 0)
        assert page.name in found.reason

    def test_certificates_that_changed_places_are_noticed(self, disk, tmp_path):
        forget(disk, [Request("ann"), Request("bob")])
        one, two = sorted(disk.path.glob("certificates/*.json"))
        first, second = one.read_bytes(), two.read_bytes()
        one.write_bytes(second)
        two.write_bytes(first)
        reseal(disk.path)
        assert "it was moved there" in verify(disk).reason

    def test_a_holdout_put_back_is_noticed_by_the_newest_certificate(self, disk, tmp_path):
        (old,) = disk.path.glob("data/bucket-*")
        content = old.read_bytes()
        forgotten(disk, tmp_path, user_with_holdout(disk))
        (new,) = disk.path.glob("data/bucket-*")
        assert new.read_bytes() != content
        new.write_bytes(content)
        reseal(disk.path)
        assert verify(disk).identical is False


def user_with_holdout(storage) -> str:
    with storage.reading() as session:
        return session.state().dataset.held_out.users[0]
