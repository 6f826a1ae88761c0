"""A process that is killed at any disk change leaves the workspace as before or as after."""

from contextlib import suppress
from dataclasses import replace

import pytest

from erasable.chain import State
from erasable.errors import WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.manifest import Manifest
from kit.choosing import some
from kit.copies import copy_of
from kit.in_buckets import SIZES, in_buckets, in_buckets_of
from kit.killing import at_changes, killed_at

ASKED = b"who asked"


def whole_manifest(path) -> Manifest:
    """Return the manifest once every file that it names was read and found right."""
    with Workspace.reading(path) as workspace:
        state = workspace.state()
        assert [len(group) for group in state.dataset.groups] == [g.interactions for g in workspace.manifest.groups]
        for link in state.chain:
            workspace.checkpoints.get(link.fingerprint)
        workspace.documents()
        workspace.issued()
        assert workspace.damaged() == []
        return workspace.manifest


@pytest.fixture(scope="module")
def people(request):
    """How many people lie in a bucket; all of them unless a test says so."""
    with in_buckets_of(getattr(request, "param", SIZES["one bucket"])):
        yield


@pytest.fixture(scope="module")
def versions(versions, people):
    """Deal people out to as many buckets as the test has."""
    learned = State(versions.learned.dataset.with_groups(), versions.learned.chain)
    forgotten = State(learned.dataset.without([versions.erased], []), versions.forgotten.chain)
    return replace(versions, learned=learned, forgotten=forgotten)


@pytest.fixture(scope="module")
def shop(versions, tmp_path_factory):
    """A workspace that has learned; to be copied."""
    return versions.learn(tmp_path_factory.mktemp("crashes") / "shop")


@at_changes
@in_buckets("one bucket")
def test_a_learn_killed_anywhere_leaves_nothing_or_everything_and_can_be_repeated(
    versions, shop, swift_path, content_of, moments
):
    undisturbed = whole_manifest(shop).files
    for change in moments(lambda: versions.learn(swift_path / "undisturbed")):
        path = swift_path / "new" / f"shop-{change}"
        died = killed_at(change, lambda path=path: versions.learn(path))
        if (path / "manifest.json").exists():
            with Workspace.writing(path):
                pass
        else:
            with pytest.raises(WorkspaceError):
                whole_manifest(path)
            versions.learn(path)
        assert whole_manifest(path).files == undisturbed
        assert set(content_of(path)) == {"manifest.json", *undisturbed}
        if not died:
            break
    assert change > 40


@at_changes
@in_buckets("many buckets")
@pytest.mark.parametrize("opened", some([Workspace.reading, Workspace.writing], 1))
def test_a_forget_killed_anywhere_leaves_the_state_before_or_after_and_whoever_opens_it_next_sweeps(
    versions, shop, swift_path, content_of, opened, moments
):
    before = whole_manifest(shop).files
    versions.forget(copy_of(shop, swift_path / "undisturbed"))
    after = whole_manifest(swift_path / "undisturbed").files
    seen = []
    for change in moments(lambda: versions.forget(copy_of(shop, swift_path / "looked at"))):
        path = copy_of(shop, swift_path / f"shop-{change}")
        died = killed_at(change, lambda path=path: versions.forget(path))
        with opened(path) as workspace:
            left = set(content_of(path))
            assert workspace.leftovers == ()
        found = whole_manifest(path)
        assert found.files == (before if found.version == 1 else after)
        assert left == set(content_of(path)) == {"manifest.json", *found.files}
        seen.append(found.version)
        if not died:
            break
    # First the old version, then the new one, and both were met.
    assert seen == sorted(seen)
    assert set(seen) == {1, 2}


@at_changes
@pytest.mark.parametrize("opened", some([Workspace.reading, Workspace.writing], 1))
def test_an_amendment_killed_anywhere_leaves_the_documents_before_or_after_and_the_same_state(
    versions, shop, swift_path, content_of, opened, moments
):
    """As when certificates are issued: a longer chain of records, certificates, and nothing pending any more."""
    accepted, seen = copy_of(shop, swift_path / "accepted"), []
    versions.accept(accepted)
    before = content_of(accepted)
    for change in moments(lambda: versions.certify(copy_of(accepted, swift_path / "looked at"))):
        path = copy_of(accepted, swift_path / f"shop-{change}")
        died = killed_at(change, lambda path=path: versions.certify(path))
        with opened(path) as workspace:
            assert set(content_of(path)) == {"manifest.json", *workspace.manifest.files}
        found = whole_manifest(path)
        certified = bool(found.certificates)
        with Workspace.reading(path) as workspace:
            expected = replace(versions.after_forgetting, certificates={})
            assert workspace.documents() == (expected if certified else replace(versions.after_learning, pending=ASKED))
            assert workspace.issued() == (versions.after_forgetting.certificates if certified else {})
            assert workspace.state().chain == versions.learned.chain
        assert found.version == 1
        assert certified or content_of(path) == before
        seen.append(certified)
        if not died:
            break
    # First the documents before, then the ones after, and both were met.
    assert seen == sorted(seen)
    assert set(seen) == {False, True}


@at_changes
@pytest.mark.parametrize("opened", some([Workspace.reading, Workspace.writing], 1))
def test_a_sealing_killed_anywhere_loses_no_certificate_and_no_record(
    versions, shop, swift_path, content_of, opened, monkeypatch, moments
):
    monkeypatch.setattr("erasable.workspace._versions.OPEN_CERTIFICATES", 1)
    more = {"request-2.json": b"{}"}
    both = {**versions.after_forgetting.certificates, **more}

    def seal(path):
        with Workspace.writing(path) as workspace:
            documents = workspace.documents()
            workspace.amend(replace(documents, log=documents.log + b"sealed\n", certificates=more, seal=True))

    forgotten, seen = copy_of(shop, swift_path / "forgotten"), []
    versions.forget(forgotten)
    for change in moments(lambda: seal(copy_of(forgotten, swift_path / "looked at"))):
        path = copy_of(forgotten, swift_path / f"shop-{change}")
        died = killed_at(change, lambda path=path: seal(path))
        with opened(path) as workspace:
            certificates = {f"certificates/{name}" for name in workspace.issued()}
            assert set(content_of(path)) == {"manifest.json", *workspace.manifest.files, *certificates}
        sealed = bool(whole_manifest(path).segments)
        with Workspace.reading(path) as workspace:
            assert dict(workspace.issued()) == (both if sealed else versions.after_forgetting.certificates)
            assert workspace.documents().records() == b"learned\nforgotten\n" + b"sealed\n" * sealed
        seen.append(sealed)
        if not died:
            break
    assert seen == sorted(seen)
    assert set(seen) == {False, True}


def test_a_reader_who_sweeps_can_itself_be_killed_anywhere(shop, swift_path, content_of):
    def read(path):
        with Workspace.reading(path):
            pass

    died, change = True, 0
    while died:
        change += 1
        path = copy_of(shop, swift_path / f"shop-{change}")
        for leftover in ("checkpoints/old.safetensors", "data/old.parquet", "manifest.json.new"):
            (path / leftover).write_bytes(b"left over")
        died = killed_at(change, lambda path=path: read(path))
        named = whole_manifest(path).files
        assert set(content_of(path)) == {"manifest.json", *named}
    # Flush the manifest, remove three files, flush three folders, and once undisturbed.
    assert change == 1 + 3 + 3 + 1


def test_a_forget_that_was_killed_can_be_repeated(versions, swift_path):
    path = versions.learn(swift_path / "shop")
    assert killed_at(9, lambda: versions.forget(path))
    versions.forget(path)
    assert whole_manifest(path).version == 2


@at_changes
def test_removing_a_failed_learn_can_itself_be_killed_anywhere(versions, swift_path, moments):
    def fail_after_commit(path):
        with suppress(KeyboardInterrupt), Workspace.creating(path) as workspace:
            versions.put_all(versions.learned, workspace)
            workspace.commit(versions.learned)
            raise KeyboardInterrupt

    for change in moments(lambda: fail_after_commit(swift_path / "undisturbed")):
        path = swift_path / f"shop-{change}"
        died = killed_at(change, lambda path=path: fail_after_commit(path))
        if (path / "manifest.json").exists():
            whole_manifest(path)
        else:
            versions.learn(path)
        if not died:
            break
    assert change > 60
