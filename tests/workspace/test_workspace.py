import re
from contextlib import suppress
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from erasable.chain import Erasure, State, environment_for, forget, link_names
from erasable.errors import WorkspaceBusy, WorkspaceError, WrongUse
from erasable.models import Effort
from erasable.requests import Request
from erasable.workspace import NO_DOCUMENTS, Stamp, Workspace, files


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
        assert state.dataset.config == given.dataset.config
        assert state.dataset.scale == given.dataset.scale
        assert state.dataset.catalogue == given.dataset.catalogue
        assert state.dataset.kept_items is None
        assert table(state.dataset.held_out) == table(given.dataset.held_out)
        assert [table(g) for g in state.dataset.groups] == [table(g) for g in given.dataset.groups]
        assert link_names(state.dataset) == [link.fingerprint for link in given.chain]


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
        after = Erasure.of([Request(versions.erased)]).apply(before.dataset)
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
        workspace.commit(versions.forgotten, replace(versions.after_forgetting, certificates={}))
    found, expected = content_of(forgotten), content_of(tmp_path / "never knew")
    apart = {"manifest.json", "certificates/request-1.json", "certificates/request-1.html"}
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
    assert {re.split("[/-]", name)[0] for name in changed} == {"data", "checkpoints", "audit"}
    assert {re.split("[/-]", name)[1] for name in changed if name.startswith("data/")} == {
        *("bucket", "items", "slots", "histories"),
    }


@pytest.mark.parametrize("way", ["in memory", "on disk"])
def test_unchanged_buckets_and_checkpoints_keep_their_files(dealt_out, tmp_path, way):
    learned = dealt_out.learn(tmp_path / "shop")
    buckets = sorted(learned.glob("data/bucket-*"))
    changed = dealt_out.learned.dataset.find(dealt_out.erased).bucket
    untouched = [path for number, path in enumerate(buckets) if number != changed] + [
        learned / f"checkpoints/{link.fingerprint}.safetensors" for link in dealt_out.learned.chain[:2]
    ]
    assert len(untouched) == 8 - 1 + 2
    before = [(path.stat().st_ino, path.stat().st_mtime_ns) for path in untouched]
    if way == "in memory":
        dealt_out.forget(learned)
    else:
        with Workspace.writing(learned) as workspace:
            dealt_out.put_all(dealt_out.forgotten, workspace)
            dataset = workspace.state().dataset.without([dealt_out.erased], [])
            workspace.commit(State(dataset, dealt_out.forgotten.chain), dealt_out.after_forgetting)
    assert [(path.stat().st_ino, path.stat().st_mtime_ns) for path in untouched] == before
    assert not buckets[changed].exists()
    with Workspace.reading(learned) as workspace:
        assert workspace.state().dataset.data_name == dealt_out.forgotten.dataset.data_name
        assert dealt_out.erased not in workspace.state().dataset.recounted().groups[2].users


def test_one_bucket_and_many_hold_the_same(versions, dealt_out, tmp_path):
    one, many = versions.learn(tmp_path / "one"), dealt_out.learn(tmp_path / "many")
    with Workspace.reading(one) as first, Workspace.reading(many) as second:
        assert (len(first.manifest.buckets), len(second.manifest.buckets)) == (1, 8)
        assert first.manifest.counts == second.manifest.counts
        assert first.manifest.groups == second.manifest.groups
        assert [table(g) for g in first.state().dataset.groups] == [table(g) for g in second.state().dataset.groups]
        assert table(first.state().dataset.held_out) == table(second.state().dataset.held_out)
        assert link_names(second.state().dataset) == [link.fingerprint for link in versions.learned.chain]


def test_finding_somebody_reads_one_bucket(dealt_out, tmp_path):
    learned = dealt_out.learn(tmp_path / "shop")
    place = dealt_out.learned.dataset.find(dealt_out.erased)
    for number, path in enumerate(sorted(learned.glob("data/bucket-*"))):
        if number != place.bucket:
            path.write_bytes(b"not looked at")
    with Workspace.reading(learned) as workspace:
        dataset = workspace.state().dataset
        assert (dataset.users, dataset.data_name) == (40, dealt_out.learned.dataset.data_name)
        assert dataset.find(dealt_out.erased) == place
        assert dataset.items_of(dealt_out.erased) == dealt_out.learned.dataset.items_of(dealt_out.erased)


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
        assert manifest.environments == (environment_for(versions.learned.dataset.config),)
        assert {link.environment for link in manifest.chain} == {0}
        assert sum(group.users for group in manifest.groups) == versions.learned.dataset.users
        assert [group.position for group in manifest.groups] == [0, 1, 2, 3]
        assert manifest.catalogue.versions == (30,)
        assert manifest.counts.held_out == len(versions.learned.dataset.held_out)
        assert [bucket.slot for bucket in manifest.buckets] == [0]
        assert (manifest.holdout, {group.file for group in manifest.groups}) == (None, {None})


def test_a_version_takes_the_stamp_that_it_is_given(versions, learned):
    stamp = Stamp(7, "5a" * 32)
    with Workspace.writing(learned) as workspace:
        workspace.commit(workspace.state(), stamp=stamp)
        assert workspace.stamp == stamp
    with Workspace.reading(learned) as workspace:
        assert workspace.stamp == stamp == (workspace.manifest.version, workspace.manifest.salt)


def test_without_a_stamp_a_version_takes_the_next_number_and_a_fresh_salt(learned):
    with Workspace.writing(learned) as workspace:
        stamps = [workspace.stamp]
        for stamp in (None, Stamp(7, "5a" * 32), None):
            workspace.commit(workspace.state(), stamp=stamp)
            stamps.append(workspace.stamp)
    assert [stamp.version for stamp in stamps] == [1, 2, 7, 8]
    assert len({stamp.salt for stamp in stamps}) == 4
    assert all(re.fullmatch("[0-9a-f]{64}", stamp.salt) for stamp in stamps)


def test_the_size_is_that_of_all_current_files(learned, content_of):
    content = content_of(learned)
    del content["manifest.json"]
    (learned / "notes.txt").write_text("somebody's own")
    with Workspace.reading(learned) as workspace:
        assert workspace.size == sum(map(len, content.values()))
    # Whoever asks for the size wants to know what would be written, not what is damaged.
    lost = sorted(learned.glob("checkpoints/*"))[0]
    lost.unlink()
    with Workspace.reading(learned) as workspace:
        assert workspace.size == sum(map(len, content.values())) - len(content[f"checkpoints/{lost.name}"])


def test_the_environment_is_the_one_that_learned(forgotten):
    with Workspace.reading(forgotten) as workspace:
        here = environment_for(workspace.state().dataset.config)
        assert (workspace.stamp.version, workspace.state().environment) == (2, here)


def test_after_a_commit_the_same_block_sees_the_new_version(versions, learned):
    with Workspace.writing(learned) as workspace:
        store, old = workspace.checkpoints, workspace.state()
        versions.put_all(versions.forgotten, workspace)
        workspace.commit(versions.forgotten)
        assert workspace.manifest.version == 2
        assert workspace.state().dataset.users == versions.forgotten.dataset.users
        store.get(versions.forgotten.chain[-1].fingerprint)
        with pytest.raises(WorkspaceError, match="open the workspace again"):
            old.dataset.groups[2]


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
            list(workspace.state().dataset.groups)
    finally:
        files.before_change = before
    assert seen == [("create", "gate.lock"), ("create", "reader.lock")]


def test_a_reader_can_not_write(versions, learned):
    with Workspace.reading(learned) as workspace:
        with pytest.raises(WrongUse, match=r"Workspace\.writing"):
            workspace.commit(versions.learned)
        with pytest.raises(WrongUse, match=r"Workspace\.writing"):
            workspace.amend(versions.after_learning)
        with pytest.raises(WrongUse, match=r"Workspace\.writing"):
            workspace.checkpoints.put(versions.memory.get(versions.learned.chain[0].fingerprint))


def test_before_the_first_commit_there_is_no_manifest(tmp_path):
    with Workspace.creating(tmp_path / "shop") as workspace:
        assert workspace.erasures == 0
        assert workspace.issued() == {}
        with pytest.raises(WorkspaceError, match="commit a state first"):
            _ = workspace.manifest
        with pytest.raises(WorkspaceError, match="commit a state first"):
            workspace.amend(NO_DOCUMENTS)
