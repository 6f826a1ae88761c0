"""Documents lie beside the state: a commit or an amendment replaces them, and certificates are only ever added."""

import os
from dataclasses import replace

import pytest

from erasable.errors import WorkspaceError, WrongUse
from erasable.workspace import NO_DOCUMENTS, Documents, Stamp, Workspace

CERTIFICATES = {"request-2.json": b'{"erased": 2}', "request-2.html": b"<p>again</p>"}
PAPERS = Documents(b"one\ntwo\n", b"a secret key", b"who asked", CERTIFICATES)


def put(way: str, workspace: Workspace, documents: Documents) -> None:
    """Replace the documents, with a new version or without."""
    if way == "commit":
        workspace.commit(workspace.state(), documents)
    else:
        workspace.amend(documents)


def facts_of(workspace: Workspace) -> dict:
    """Everything that a manifest says, the documents and the names of files apart."""
    documents = {"audit", "key", "pending", "certificates", "files", "fingerprint"}
    return workspace.manifest.model_dump(exclude=documents)


both_ways = pytest.mark.parametrize("way", ["commit", "amend"])


def test_stamps_count_up_and_have_32_random_bytes():
    first, second = Stamp.after(0), Stamp.after(0)
    assert (first.version, Stamp.after(first.version).version) == (1, 2)
    assert first.salt != second.salt
    assert len(bytes.fromhex(first.salt)) == 32


def test_a_secret_is_not_shown_by_accident():
    assert "secret" not in repr(PAPERS)
    assert "who asked" not in repr(PAPERS)


@both_ways
def test_documents_come_back_from_disk_as_they_were_given(learned, way):
    with Workspace.writing(learned) as workspace:
        put(way, workspace, PAPERS)
        assert workspace.documents() == replace(PAPERS, certificates={})
    with Workspace.reading(learned) as workspace:
        assert workspace.documents() == replace(PAPERS, certificates={})
        assert workspace.issued() == CERTIFICATES
        assert workspace.unchecked_log() == b"one\ntwo\n"


@both_ways
def test_documents_that_are_not_given_again_are_gone_and_certificates_stay(versions, forgotten, content_of, way):
    with Workspace.writing(forgotten) as workspace:
        put(way, workspace, PAPERS)
        put(way, workspace, NO_DOCUMENTS)
    with Workspace.reading(forgotten) as workspace:
        assert workspace.documents() == NO_DOCUMENTS
        assert workspace.unchecked_log() == b""
        assert workspace.issued() == {**versions.after_forgetting.certificates, **CERTIFICATES}
        assert set(content_of(forgotten)) == {"manifest.json", *workspace.manifest.files}
    found = b"\n".join(content_of(forgotten).values())
    assert b"secret" not in found
    assert b"who asked" not in found


@both_ways
def test_documents_take_the_place_of_the_ones_before(forgotten, content_of, way):
    before = content_of(forgotten)
    with Workspace.writing(forgotten) as workspace:
        put(way, workspace, replace(workspace.documents(), log=b"one\n"))
    found = content_of(forgotten)
    assert [found[name] for name in found if name.startswith("audit")] == [b"one\n"]
    assert [before[name] for name in before if name.startswith("audit")] == [b"learned\nforgotten\n"]
    assert found["signing-key.txt"] == before["signing-key.txt"] == b"a secret key"


@both_ways
def test_another_key_takes_the_place_of_the_one_before(forgotten, content_of, way):
    for key in (b"another key", b"a third key"):
        with Workspace.writing(forgotten) as workspace:
            put(way, workspace, replace(workspace.documents(), key=key))
        with Workspace.reading(forgotten) as workspace:
            assert workspace.documents().key == key
        found = content_of(forgotten)
        assert [found[name] for name in found if name.startswith("signing-key")] == [key]


@both_ways
def test_the_pending_file_is_gone_when_it_is_dropped(learned, content_of, way):
    with Workspace.writing(learned) as workspace:
        assert workspace.pending_files == ()
        put(way, workspace, PAPERS)
        (pending,) = workspace.pending_files
        assert (learned / pending).read_bytes() == b"who asked"
        put(way, workspace, replace(workspace.documents(), pending=b""))
        assert workspace.pending_files == ()
        assert not (learned / pending).exists()
    assert not any(b"who asked" in content for content in content_of(learned).values())


@both_ways
@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_the_key_and_the_pending_file_are_for_their_owner_alone(learned, way, umask):
    before = os.umask(umask)
    try:
        with Workspace.writing(learned) as workspace:
            put(way, workspace, replace(PAPERS, key=b"another key"))
            names = (workspace.manifest.key, *workspace.pending_files)
    finally:
        os.umask(before)
    assert [(learned / name).stat().st_mode & 0o777 for name in names] == [0o600, 0o600]


def test_the_key_is_private_from_the_first_version_on(learned):
    assert (learned / "signing-key.txt").stat().st_mode & 0o777 == 0o600


class TestAmending:
    def test_everything_but_the_documents_stays(self, learned, content_of):
        before = content_of(learned)
        with Workspace.writing(learned) as workspace:
            facts, stamp = facts_of(workspace), workspace.stamp
            workspace.amend(PAPERS)
            assert (facts_of(workspace), workspace.stamp) == (facts, stamp)
        with Workspace.reading(learned) as workspace:
            assert (facts_of(workspace), workspace.stamp) == (facts, stamp)
        after = content_of(learned)
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        assert {name.split("-")[0] for name in changed} == {
            *("manifest.json", "audit", "pending"),
            *("certificates/request",),
        }

    def test_the_files_of_the_state_are_not_even_touched(self, learned, content_of):
        def touched():
            names = [name for name in content_of(learned) if name.startswith(("data", "checkpoints", "holdout"))]
            return {name: ((learned / name).stat().st_ino, (learned / name).stat().st_mtime_ns) for name in names}

        before = touched()
        with Workspace.writing(learned) as workspace:
            workspace.amend(PAPERS)
        assert touched() == before

    def test_the_state_that_was_handed_out_stays_good(self, versions, learned):
        with Workspace.writing(learned) as workspace:
            state = workspace.state()
            first = state.dataset.groups[0]
            workspace.amend(PAPERS)
            assert workspace.state() is state
            assert state.dataset.groups[0] is first
            # Read only now.
            assert state.dataset.groups[1].digest() == versions.learned.dataset.groups[1].digest()
            for link in state.chain:
                workspace.checkpoints.get(link.fingerprint)

    def test_a_commit_afterwards_still_knows_which_buckets_are_untouched(self, dealt_out, tmp_path):
        learned = dealt_out.learn(tmp_path / "shop")
        with Workspace.writing(learned) as workspace:
            state = workspace.state()
            first, before = state.dataset.groups[0], workspace.manifest.buckets
            workspace.amend(PAPERS)
            (learned / workspace.manifest.buckets[0].file).write_bytes(b"not looked at, since it was handed out")
            workspace.commit(state)
            assert workspace.state() is not state
            assert workspace.manifest.buckets == before
            assert workspace.manifest.groups[0].interactions == len(first)
        assert (learned / workspace.manifest.buckets[0].file).read_bytes().startswith(b"not looked at")

    def test_checkpoints_that_were_not_committed_go(self, versions, learned, content_of):
        new = [link for link in versions.forgotten.chain if link not in versions.learned.chain]
        with Workspace.writing(learned) as workspace:
            versions.put_all(versions.forgotten, workspace)
            workspace.amend(PAPERS)
            assert set(content_of(learned)) == {"manifest.json", *workspace.manifest.files}
            assert not any(link.fingerprint in workspace.checkpoints for link in new)
            with pytest.raises(WorkspaceError, match="holds no checkpoint"):
                workspace.commit(versions.forgotten)

    def test_readers_see_the_new_documents(self, learned):
        with Workspace.writing(learned) as workspace:
            workspace.amend(PAPERS)
            with Workspace.reading(learned) as reader:
                assert reader.documents() == workspace.documents()


class TestCertificates:
    @both_ways
    def test_they_are_added_one_for_each_erasure_oldest_first(self, forgotten, way):
        with Workspace.writing(forgotten) as workspace:
            assert workspace.erasures == 1
            put(way, workspace, Documents(certificates={"request-0.json": b"{}", "request-0.html": b"<p>"}))
            assert list(workspace.issued()) == ["request-1.json", "request-1.html", "request-0.json", "request-0.html"]
            assert workspace.erasures == 2
        assert (forgotten / "certificates/request-1.json").read_bytes() == b'{"erased": 1}'
        assert (forgotten / "certificates/request-0.html").read_bytes() == b"<p>"

    @both_ways
    @pytest.mark.parametrize(
        "name",
        [
            *(
                "",
                ".json",
                ".hidden.json",
                "../outside.json",
                "a/b.json",
                "a\nb.json",
                "a.json\n",
                "é.json",
                "a b.json",
            ),
            *("request-2", "a.txt", "a.json.exe", "a.JSON", "x" * 129 + ".json"),
        ],
    )
    def test_a_name_that_can_not_be_a_file_of_ours_is_refused(self, learned, content_of, way, name):
        before = content_of(learned)
        with Workspace.writing(learned) as workspace, pytest.raises(WrongUse, match="can't name a certificate"):
            put(way, workspace, Documents(certificates={"good.json": b"{}", name: b"{}"}))
        assert content_of(learned) == before
        assert not list(learned.parent.glob("outside*"))

    @both_ways
    @pytest.mark.parametrize("name", ["a.json", "A-1_2.b.html", "0.json", "x" * 128 + ".html"])
    def test_a_plain_name_is_taken(self, learned, way, name):
        with Workspace.writing(learned) as workspace:
            put(way, workspace, Documents(certificates={name: b"{}"}))
        assert (learned / "certificates" / name).read_bytes() == b"{}"

    @both_ways
    @pytest.mark.parametrize("name", ["request-1.json", "request-1.html"])
    def test_none_is_ever_replaced(self, forgotten, content_of, way, name):
        before = content_of(forgotten)
        with Workspace.writing(forgotten) as workspace, pytest.raises(WorkspaceError, match="already"):
            put(way, workspace, Documents(certificates={name: b"other"}))
        assert content_of(forgotten) == before
