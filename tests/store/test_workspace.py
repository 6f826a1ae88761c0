import errno
from contextlib import suppress

import pyarrow.parquet as pq
import pytest

from erasable.errors import ErasableError, WorkspaceBusy, WorkspaceError, WrongUse
from erasable.models import Effort
from erasable.store import Workspace, files
from erasable.training import numeric_environment, stage_names
from erasable.unlearning import Erasure, Request, forget


def table(interactions):
    """Everything that interactions say, as bytes."""
    time = None if interactions.time is None else interactions.time.tobytes()
    return (
        interactions.digest(),
        interactions.items.texts(),
        interactions.user_index.tobytes(),
        interactions.rating.tobytes(),
        time,
    )


def test_a_state_comes_back_from_disk_with_the_same_bytes(versions, learned):
    given = versions.learned
    with Workspace.reading(learned) as workspace:
        state = workspace.state()
        assert state.chain == given.chain
        assert state.knowledge.config == given.knowledge.config
        assert state.knowledge.scale == given.knowledge.scale
        assert state.knowledge.catalogue == given.knowledge.catalogue
        assert state.knowledge.kept_items is None
        assert table(state.knowledge.held_out) == table(given.knowledge.held_out)
        assert [table(g) for g in state.knowledge.groups] == [table(g) for g in given.knowledge.groups]
        assert stage_names(state.knowledge) == [link.fingerprint for link in given.chain]


def test_checkpoints_come_back_from_disk_with_the_same_bytes(versions, learned):
    with Workspace.reading(learned) as workspace:
        for link in versions.learned.chain:
            found, given = workspace.checkpoints.get(link.fingerprint), versions.memory.get(link.fingerprint)
            assert found.parent == given.parent
            assert {name: array.tobytes() for name, array in found.arrays().items()} == {
                name: array.tobytes() for name, array in given.arrays().items()
            }


def test_two_workspaces_that_learned_the_same_have_the_same_files(versions, tmp_path, content_of):
    first, second = (content_of(versions.learn(tmp_path / name)) for name in ("first", "second"))
    # The manifests differ in their salt.
    assert first.pop("manifest.json") != second.pop("manifest.json")
    assert first == second


def test_forgetting_on_disk_is_forgetting_in_memory(versions, learned):
    with Workspace.writing(learned) as workspace:
        before = workspace.state()
        after = Erasure.of([Request(versions.erased)]).apply(before.knowledge)
        state = forget(before, after, workspace.checkpoints, Effort(1))
        workspace.commit(state)
    with Workspace.reading(learned) as workspace:
        chain = [link.fingerprint for link in workspace.state().chain]
        assert chain == [link.fingerprint for link in versions.forgotten.chain]
        for name in chain:
            workspace.checkpoints.get(name)


def test_a_forgetful_workspace_holds_what_one_holds_that_never_knew(versions, forgotten, tmp_path, content_of):
    with Workspace.creating(tmp_path / "never knew") as workspace:
        versions.put_all(versions.forgotten, workspace)
        workspace.commit(versions.forgotten)
    found, expected = content_of(forgotten), content_of(tmp_path / "never knew")
    apart = {"manifest.json", "certificates/request-1.json"}
    assert {name: found[name] for name in found if name not in apart} == {
        name: expected[name] for name in expected if name not in apart
    }


def test_after_forgetting_no_file_of_the_old_version_is_left(versions, learned, content_of):
    old = content_of(learned)
    versions.forget(learned)
    new = content_of(learned)
    with Workspace.reading(learned) as workspace:
        assert set(new) == {"manifest.json", *workspace.manifest.files}
    changed = {name for name in old if name not in new}
    assert {name.split("/")[0] for name in changed} == {"data", "checkpoints", "holdout"}


def test_unchanged_groups_and_checkpoints_keep_their_files(versions, learned):
    untouched = sorted(learned.glob("data/*"))[:2] + [
        learned / f"checkpoints/{link.fingerprint}.safetensors" for link in versions.learned.chain[:2]
    ]
    before = [(path.stat().st_ino, path.stat().st_mtime_ns) for path in untouched]
    versions.forget(learned)
    assert [(path.stat().st_ino, path.stat().st_mtime_ns) for path in untouched] == before


def test_after_forgetting_no_file_names_the_user(versions, learned, content_of):
    def names_of_users(root):
        return {text for file in root.rglob("*.parquet") for text in _texts(file)}

    assert versions.erased in names_of_users(learned)
    versions.forget(learned)
    assert versions.erased not in names_of_users(learned)
    assert not any(versions.erased.encode() in content for content in content_of(learned).values())


def _texts(file):
    columns = pq.read_table(file).select(
        [name for name in ("user_id", "item_id") if name in pq.read_schema(file).names]
    )
    return [text for column in columns.columns for text in column.to_pylist()]


def test_versions_count_up_and_each_has_its_own_salt(versions, learned):
    with Workspace.reading(learned) as workspace:
        first = workspace.manifest
    versions.forget(learned)
    with Workspace.reading(learned) as workspace:
        second = workspace.manifest
    assert (first.version, second.version) == (1, 2)
    assert first.salt != second.salt
    assert first.salt.encode() not in (learned / "manifest.json").read_bytes()


def test_the_manifest_says_what_is_there(versions, learned):
    with Workspace.reading(learned) as workspace:
        manifest = workspace.manifest
        assert manifest.environment == numeric_environment()
        assert sum(group.users for group in manifest.groups) == versions.learned.knowledge.users
        assert [group.position for group in manifest.groups] == [0, 1, 2, 3]
        assert manifest.catalogue.versions == (30,)
        assert manifest.holdout.interactions == len(versions.learned.knowledge.held_out)


def test_certificates_are_added_one_for_each_erasure(versions, forgotten):
    with Workspace.writing(forgotten) as workspace:
        assert workspace.erasures == 1
        workspace.commit(workspace.state(), {"request-0": b"{}"})
        assert list(workspace.issued()) == ["request-1", "request-0"]
        assert workspace.erasures == 2
    assert (forgotten / "certificates/request-1.json").read_bytes() == b'{"erased": 1}'


def test_each_version_takes_the_salt_that_was_announced_for_it(learned):
    with Workspace.writing(learned) as workspace:
        first = workspace.next_salt
        workspace.commit(workspace.state())
        assert workspace.manifest.salt == first
        assert workspace.next_salt != first


def test_issued_certificates_go_by_request_id(forgotten):
    with Workspace.reading(forgotten) as workspace:
        assert workspace.issued() == {"request-1": b'{"erased": 1}'}
        assert (workspace.version, workspace.environment) == (2, numeric_environment())


def test_after_a_commit_the_same_block_sees_the_new_version(versions, learned):
    with Workspace.writing(learned) as workspace:
        store, old = workspace.checkpoints, workspace.state()
        versions.put_all(versions.forgotten, workspace)
        workspace.commit(versions.forgotten)
        assert workspace.manifest.version == 2
        assert workspace.state().knowledge.users == versions.forgotten.knowledge.users
        store.get(versions.forgotten.chain[-1].fingerprint)
        with pytest.raises(WorkspaceError, match="open the workspace again"):
            old.knowledge.groups[2]


def test_a_second_writer_is_refused(learned):
    with Workspace.writing(learned):
        with pytest.raises(WorkspaceBusy, match="another command is writing"), Workspace.writing(learned):
            pass
        with Workspace.reading(learned) as reader:
            assert reader.manifest.version == 1


def test_what_is_not_committed_is_swept_at_the_end(versions, learned, content_of):
    before = content_of(learned)
    with Workspace.writing(learned) as workspace:
        versions.put_all(versions.forgotten, workspace)
        assert content_of(learned) != before
    assert content_of(learned) == before
    with suppress(KeyboardInterrupt), Workspace.writing(learned) as workspace:
        versions.put_all(versions.forgotten, workspace)
        raise KeyboardInterrupt
    assert content_of(learned) == before


def test_readers_change_nothing_but_their_locks(learned):
    for lock in ("gate.lock", "reader.lock"):
        (learned / lock).unlink()
    seen = []
    before = files.before_change
    files.before_change = lambda kind, path: seen.append((kind, path.name))
    try:
        with Workspace.reading(learned) as workspace:
            list(workspace.state().knowledge.groups)
    finally:
        files.before_change = before
    assert seen == [("create", "gate.lock"), ("create", "reader.lock")]


def test_a_reader_can_not_write(versions, learned):
    with Workspace.reading(learned) as workspace:
        with pytest.raises(WrongUse, match=r"Workspace\.writing"):
            workspace.commit(versions.learned)
        with pytest.raises(WrongUse, match=r"Workspace\.writing"):
            workspace.checkpoints.put(versions.memory.get(versions.learned.chain[0].fingerprint))


def test_before_the_first_commit_there_is_no_manifest(tmp_path):
    with Workspace.creating(tmp_path / "shop") as workspace:
        assert workspace.erasures == 0
        assert workspace.issued() == {}
        with pytest.raises(WorkspaceError, match="commit a state first"):
            _ = workspace.manifest


@pytest.mark.parametrize("kind", ["create", "write", "flush", "replace"])
def test_a_full_disk_leaves_the_old_state_and_says_so(versions, learned, content_of, monkeypatch, kind):
    before = content_of(learned)

    def full(change, path):
        if change == kind and path.name.startswith(("held-out", "manifest.json")):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "before_change", full)
    with pytest.raises(ErasableError, match=r"disk is full.*what was there before stays"):
        versions.forget(learned)
    assert content_of(learned) == before
