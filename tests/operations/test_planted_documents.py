"""Documents that were exchanged, emptied or changed by someone who can seal a manifest again: none is taken."""

import json
import shutil
from pathlib import Path

import pytest
import safetensors.numpy

from erasable import Recommender, fingerprint
from erasable.errors import ListUnusable, NewerDocument, WorkspaceError, of_command
from erasable.operations import Claim, DiskStorage, Outside, forget, learn, learn_more, plan_upgrade, status, verify
from erasable.operations.do_not_learn import default_places
from erasable.proof import Statement, new_key
from erasable.proof.certificate import canonical
from erasable.proof.do_not_learn import DoNotLearnFiles
from erasable.requests import Request
from erasable.workspace import Workspace
from kit import elsewhere
from kit.asking import submit
from kit.tampering import seal_again

BOB = [Request("bob")]


@pytest.fixture
def shop(learned, copied, tmp_path) -> DiskStorage:
    """A workspace that has forgotten someone."""
    storage = DiskStorage(copied(learned, tmp_path / "shop"))
    forget(storage, [Request("ann")])
    return storage


@pytest.fixture
def other(shop, table, config, tmp_path) -> DiskStorage:
    """Another workspace, whose list has another key."""
    learn(table, tmp_path / "other", config)
    forget(DiskStorage(tmp_path / "other"), [Request("eve")])
    return DiskStorage(tmp_path / "other")


def users(storage: DiskStorage) -> set[str]:
    with storage.reading() as session:
        return {user for group in session.state().dataset.groups for user in group.users}


def manifest_of(storage: DiskStorage) -> dict:
    return json.loads((storage.path / "manifest.json").read_bytes())


def exchange_lists(one: DiskStorage, other: DiskStorage) -> None:
    """Put the list and the key of another workspace in the place of one's own."""
    mine, theirs = default_places(one.path), default_places(other.path)
    shutil.copy(theirs.list, mine.list)
    shutil.copy(theirs.key, mine.key)


class TestAListThatCanNotBeRead:
    @staticmethod
    def newer(content: bytes) -> bytes:
        return content.replace(b'"format":1', b'"format":2')

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda places: places.list.unlink(),
            lambda places: places.key.unlink(),
            lambda places: places.list.write_bytes(b""),
            lambda places: places.list.write_bytes(places.list.read_bytes()[:-9]),
            lambda places: places.list.write_bytes(TestAListThatCanNotBeRead.newer(places.list.read_bytes())),
            lambda places: places.list.write_bytes(places.list.read_bytes().replace(b"{", b'{"format":1,', 1)),
            lambda places: places.key.write_text("ab" * 32),
            lambda places: (places.list.unlink(), places.list.mkdir()),
            lambda places: (places.list.unlink(), places.list.symlink_to(places.list.parent.parent / "shop" / "list")),
        ],
        ids=["missing", "no key", "empty", "truncated", "newer", "doubled", "another key", "folder", "link"],
    )
    def test_leaves_no_verdict(self, shop, spoil):
        spoil(default_places(shop.path))
        found = verify(shop)
        assert (found.identical, found.compared, found.elsewhere, found.recorded) == (None, 0, False, False)
        assert found.reason.startswith("it can't be told whether someone erased is held again (")

    def test_is_not_needed_where_none_is_kept_or_another_is_named(self, shop, tmp_path):
        places = default_places(shop.path)
        copy = DoNotLearnFiles(tmp_path / "lists" / "copy.json", tmp_path / "keys" / "copy.key")
        for source, target in ((places.list, copy.list), (places.key, copy.key)):
            target.parent.mkdir()
            shutil.move(source, target)
        assert verify(shop).identical is None
        assert verify(shop, Claim(do_not_learn=copy)).identical is True
        forget(shop, [], outside=Outside(without_do_not_learn=True))
        assert verify(shop).identical is True

    def test_hides_nothing_else_that_is_wrong(self, shop):
        default_places(shop.path).list.unlink()
        next(shop.path.glob("certificates/*.html")).unlink()
        assert verify(shop).identical is False


class TestAListOfAnotherWorkspace:
    def test_is_refused_and_nobody_comes_back(self, shop, other, table):
        exchange_lists(shop, other)
        for attempt in (lambda: learn_more(shop, table), lambda: forget(shop, BOB)):
            with pytest.raises(ListUnusable, match="is not the do-not-learn list that this workspace has used"):
                attempt()
        assert users(shop) == {"bob", "cat", "dan", "eve", "fay"}
        assert verify(shop).identical is None

    def test_is_refused_for_a_copy_too(self, shop, other, tmp_path):
        exchange_lists(shop, other)
        with pytest.raises(ListUnusable, match="is not the do-not-learn list"):
            Recommender.load(shop.path).save(tmp_path / "copy")

    def test_is_taken_where_it_is_named_elsewhere(self, shop, other, table, tmp_path):
        exchange_lists(shop, other)
        moved = DoNotLearnFiles(tmp_path / "lists" / "list.json", tmp_path / "keys" / "key")
        places = default_places(shop.path)
        for source, target in ((places.list, moved.list), (places.key, moved.key)):
            target.parent.mkdir()
            shutil.move(source, target)
        forget(shop, [], outside=Outside(do_not_learn=moved))
        assert learn_more(shop, table).suppressed == 1  # eve
        forget(shop, BOB)

    def test_may_be_done_without(self, shop, other):
        exchange_lists(shop, other)
        forget(shop, BOB, outside=Outside(without_do_not_learn=True))
        assert "bob" not in users(shop)

    def test_is_known_by_a_workspace_of_before_from_its_next_erasure_on(self, shop, other, table):
        preferences = manifest_of(shop)["preferences"]
        assert preferences.pop("do_not_learn_key")
        seal_again(shop.path, preferences=preferences)
        assert verify(shop).identical is True
        forget(shop, BOB)
        assert manifest_of(shop)["preferences"]["do_not_learn_key"]
        exchange_lists(shop, other)
        with pytest.raises(ListUnusable):
            learn_more(shop, table)

    def test_is_told_by_a_digest_that_the_list_names_too(self, shop):
        places = default_places(shop.path)
        pinned = manifest_of(shop)["preferences"]["do_not_learn_key"]
        assert pinned == json.loads(places.list.read_bytes())["key"]
        assert pinned != places.key.read_text().strip()
        assert status(shop)["do_not_learn"]["kept"] == "in files"


def last_record_changed(storage: DiskStorage, **facts) -> None:
    """Change the last record of the log and seal all of it again."""
    (path,) = storage.path.glob("audit-*")
    *before, last = path.read_bytes().splitlines(keepends=True)
    unsealed = canonical(json.loads(last) | facts | {"hash": ""})
    seal = fingerprint.of_bytes(unsealed)
    path.write_bytes(b"".join(before) + unsealed.replace(b'"hash":""', f'"hash":"{seal}"'.encode()) + b"\n")
    seal_again(storage.path)


def log_changed(storage: DiskStorage, change) -> None:
    (path,) = storage.path.glob("audit-*")
    path.write_bytes(change(path.read_bytes()))
    seal_again(storage.path)


PLANTED = {
    "empty log": lambda storage: log_changed(storage, lambda log: b""),
    "no log": lambda storage: seal_again(storage.path, audit=None),
    "newline cut": lambda storage: log_changed(storage, lambda log: log[:-1]),
    "doubled name": lambda storage: log_changed(
        storage, lambda log: log.replace(b'"what":"forget"', b'"what":"forget","what":"forget"')
    ),
    "version set back": lambda storage: seal_again(storage.path, version=1),
    "certificates unnamed": lambda storage: seal_again(storage.path, certificates=[]),
    "number is text": lambda storage: last_record_changed(storage, number="x"),
    "certificates are a list": lambda storage: last_record_changed(storage, certificates=[1]),
    "version is text": lambda storage: last_record_changed(storage, version="x"),
    "another key": lambda storage: (
        (storage.path / "signing-key.txt").write_bytes(new_key()),
        seal_again(storage.path),
    ),
    "empty key": lambda storage: ((storage.path / "signing-key.txt").write_bytes(b""), seal_again(storage.path)),
    "no key": lambda storage: seal_again(storage.path, key=None),
}


class TestBrokenPapers:
    @pytest.mark.full
    @pytest.mark.parametrize("planted", PLANTED)
    def test_are_not_certified_upon(self, shop, planted):
        PLANTED[planted](shop)
        with pytest.raises(WorkspaceError):
            forget(shop, BOB)
        assert "bob" in users(shop)
        assert len(list(shop.path.glob("certificates/*.json"))) <= 1

    @pytest.mark.parametrize("planted", PLANTED)
    def test_are_different(self, shop, planted):
        PLANTED[planted](shop)
        found = verify(shop)
        assert (found.identical, found.compared) == (False, 0)

    def test_a_record_of_a_later_format_is_not_certified_upon(self, shop):
        last_record_changed(shop, format=9)
        for attempt in (lambda: forget(shop, BOB), lambda: verify(shop), lambda: status(shop)):
            with pytest.raises(NewerDocument, match="a later version wrote it"):
                attempt()
        assert "bob" in users(shop)

    def test_that_are_sealed_are_looked_at_from_the_last_seal_on(self, shop, monkeypatch):
        monkeypatch.setattr("erasable.workspace._versions.OPEN_CERTIFICATES", 0)
        forget(shop, BOB)
        forget(shop, [Request("cat")])
        assert list(shop.path.glob("sealed/log-*"))
        last_record_changed(shop, number="x")
        with pytest.raises(WorkspaceError):
            forget(shop, [Request("dan")])
        assert "dan" in users(shop)

    @pytest.mark.parametrize("planted", ["another key", "newline cut", "version set back"])
    def test_that_are_sealed_are_not_certified_upon(self, shop, monkeypatch, planted):
        monkeypatch.setattr("erasable.workspace._versions.OPEN_CERTIFICATES", 0)
        forget(shop, BOB)
        PLANTED[planted](shop)
        with pytest.raises(WorkspaceError):
            forget(shop, [Request("dan")])
        assert "dan" in users(shop)

    def test_whoever_may_not_read_the_key_can_verify(self, shop, monkeypatch):
        monkeypatch.setattr(Workspace, "_is_hidden", lambda self, name: name == self.manifest.key)
        assert verify(shop).identical is True


class TestACheckpointThatHoldsMore:
    def planted(self, storage: DiskStorage, change) -> None:
        path = next(storage.path.glob("checkpoints/*"))
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        facts = json.loads(content[8 : 8 + length])["__metadata__"]
        arrays = safetensors.numpy.load(content)
        change(arrays, facts)
        path.write_bytes(safetensors.numpy.save(arrays, metadata=facts))
        seal_again(storage.path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda arrays, facts: arrays.update(more=next(iter(arrays.values()))),
            lambda arrays, facts: facts.update(more="ann"),
            lambda arrays, facts: facts.update(
                erasable=json.dumps(json.loads(facts["erasable"]) | {"more": "ann"}, sort_keys=True)
            ),
        ],
        ids=["an array", "metadata", "a fact"],
    )
    def test_is_different(self, shop, change):
        self.planted(shop, change)
        found = verify(shop)
        assert found.identical is False
        assert "more than a checkpoint" in found.reason

    @pytest.mark.parametrize("changes", [{"names": "0.5"}, {"samples": -5}], ids=str)
    def test_a_manifest_that_says_what_none_can_say_is_refused(self, shop, changes):
        chain = manifest_of(shop)["chain"]
        if "samples" in changes:
            chain[0] |= changes
        seal_again(shop.path, **({"names": "0.5"} if "names" in changes else {"chain": chain}))
        assert not_taken(shop)


def not_taken(storage: DiskStorage) -> bool:
    try:
        return verify(storage).identical is False
    except WorkspaceError:
        return True


class TestACertificateThatWasHandedOut:
    @pytest.fixture
    def certificate(self, shop, tmp_path) -> Path:
        return Path(shutil.copy(next(shop.path.glob("certificates/*.json")), tmp_path / "certificate.json"))

    @pytest.mark.parametrize(
        "change",
        [
            lambda content: b"\xef\xbb\xbf" + content,
            lambda content: content.replace(b'"threads":', b'"threads":9,"threads":'),
            lambda content: content.replace(b'"grain":', b'"grain":NaN,"fine":'),
            lambda content: content.replace(b'"policy":"', b'"policy":"\\ud800'),
        ],
        ids=["mark", "doubled", "NaN", "half a letter"],
    )
    def test_and_can_be_read_in_two_ways_was_changed(self, shop, certificate, change):
        changed = change(certificate.read_bytes())
        assert changed != certificate.read_bytes()
        certificate.write_bytes(changed)
        found = verify(shop, Claim(certificate))
        assert found.identical is False
        assert "it was changed" in found.reason
        assert "no JSON" not in found.reason

    def test_and_was_signed_again_is_not_said_to_be_removed(self, shop, certificate):
        with shop.reading() as session:
            key = session.documents().key
        fields = json.loads(certificate.read_bytes()) | {"threads": 99}
        certificate.write_bytes(Statement.model_validate(fields).signed(key))
        found = verify(shop, Claim(certificate))
        assert found.identical is False
        assert "has another certificate for the same request" in found.reason


class TestWordsThatAreTrue:
    def test_the_folder_is_named_where_a_command_is(self, learned, copied, tmp_path):
        storage = DiskStorage(copied(learned, tmp_path / "shop"))
        submit(storage, *BOB)
        assert f"erasable forget {storage.path} --resume" in of_command(verify(storage).reason)
        elsewhere.moved(storage.path, numba="0.1")
        found = verify(storage)
        assert (found.identical, found.elsewhere) == (None, True)
        assert f"erasable upgrade {storage.path} makes it" in of_command(found.reason)

    def test_after_an_old_manifest_was_put_back_the_newest_copy_is_asked_for(self, learned, copied, tmp_path):
        storage = DiskStorage(copied(learned, tmp_path / "shop"))
        old = (storage.path / "manifest.json").read_bytes()
        forget(storage, [Request("ann")])
        (storage.path / "manifest.json").write_bytes(old)
        found = verify(storage)
        assert found.identical is False
        assert "an older manifest.json was put back" in found.reason

    def test_an_upgrade_that_is_not_needed_tells_what_is_damaged(self, shop):
        assert plan_upgrade(shop).refused is None
        next(shop.path.glob("certificates/*.json")).write_bytes(b"damaged")
        planned = plan_upgrade(shop)
        assert planned.needed is False
        assert planned.refused.startswith("damaged or missing: certificates/")
