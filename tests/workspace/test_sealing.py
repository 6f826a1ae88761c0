from dataclasses import replace

import pytest

from erasable import fingerprint
from erasable.errors import WorkspaceDamaged, WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace import folder as sealing
from erasable.workspace.folder import NamedFiles
from erasable.workspace.workspace import unnamed_files


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr("erasable.workspace._versions.OPEN_CERTIFICATES", 3)


def certify(path, number, seal=True, record=b"record"):
    """Add a certificate, its page and a record, as an erasure does."""
    added = {f"{number}.json": b'{"number": %d}' % number, f"{number}.html": b"<p>%d</p>" % number}
    with Workspace.writing(path) as workspace:
        documents = workspace.documents()
        log = documents.log + b"%s %d\n" % (record, number)
        workspace.amend(replace(documents, log=log, certificates=added, seal=seal))
    return added


@pytest.fixture
def sealed(learned):
    """A workspace with five erasures, of which four are sealed in two segments; and all its certificates."""
    issued = {}
    for number in range(5):
        issued |= certify(learned, number)
    return learned, issued


def test_finished_documents_are_sealed_and_read_as_before(sealed):
    path, issued = sealed
    with Workspace.reading(path) as workspace:
        assert len(workspace.manifest.segments) == 2
        assert workspace.manifest.certificates == ("4.json", "4.html")
        assert dict(workspace.issued()) == issued
        assert list(workspace.issued()) == list(issued)
        assert (len(workspace.issued()), "1.json" in workspace.issued(), "9.json" in workspace.issued()) == (
            10,
            True,
            False,
        )
        assert workspace.erasures == 5
        assert workspace.documents().records() == b"learned\n" + b"".join(b"record %d\n" % n for n in range(5))
        assert workspace.unchecked_log() == workspace.documents().records()
        assert workspace.damaged() == []


def test_an_unknown_certificate_is_not_there(sealed):
    with Workspace.reading(sealed[0]) as workspace, pytest.raises(KeyError):
        workspace.issued()["9.json"]


def test_the_last_record_stays_open_for_the_one_that_follows(sealed):
    with Workspace.reading(sealed[0]) as workspace:
        assert workspace.documents().log == b"record 3\nrecord 4\n"


def test_the_manifest_does_not_grow_with_the_certificates(learned):
    certify(learned, 0)
    certify(learned, 1)
    with Workspace.reading(learned) as workspace:
        first = len(workspace.manifest.files)
    for number in range(2, 20):
        certify(learned, number)
    with Workspace.reading(learned) as workspace:
        assert len(workspace.manifest.files) <= first + 2 * 9  # two files for each of nine segments more


def test_what_was_not_searched_is_not_sealed(learned):
    for number in range(5):
        certify(learned, number, seal=False)
    with Workspace.reading(learned) as workspace:
        assert workspace.manifest.segments == ()
    certify(learned, 5)
    with Workspace.reading(learned) as workspace:
        assert [segment.erasures for segment in workspace.manifest.segments] == [6]


def test_sealed_certificates_are_no_leftovers_and_others_are(sealed):
    path, issued = sealed
    (path / "certificates" / "stranger.json").write_bytes(b"{}")
    with Workspace.reading(path, sweeping=False) as workspace:
        assert unnamed_files(path, NamedFiles.of(path, workspace.manifest)) == ("certificates/stranger.json",)
    with Workspace.writing(path) as workspace:
        assert dict(workspace.issued()) == issued
    assert not (path / "certificates" / "stranger.json").exists()
    assert len(list((path / "certificates").iterdir())) == len(issued)


def test_a_changed_sealed_certificate_is_noticed(sealed):
    path, _ = sealed
    (path / "certificates" / "1.json").write_bytes(b'{"number": 7}')
    with Workspace.reading(path) as workspace:
        assert workspace.damaged() == ["certificates/1.json"]
        with pytest.raises(WorkspaceDamaged, match=r"certificates/1\.json is damaged"):
            workspace.issued()["1.json"]


def test_a_missing_sealed_certificate_is_noticed(sealed):
    path, _ = sealed
    (path / "certificates" / "2.html").unlink()
    with Workspace.reading(path) as workspace:
        assert workspace.damaged() == ["certificates/2.html"]


@pytest.mark.parametrize("kind", ["certificates", "log"])
def test_a_damaged_segment_is_noticed_and_nothing_is_swept(sealed, kind):
    path, issued = sealed
    segment = min((path / "sealed").glob(f"{kind}-*"))
    segment.write_bytes(segment.read_bytes()[:-1])
    with Workspace.writing(path) as workspace:
        assert workspace.damaged() == [segment.relative_to(path).as_posix()]
        workspace.amend(workspace.documents())
    assert len(list((path / "certificates").iterdir())) == len(issued)


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        (b'{"format":2}', WorkspaceError, "has the format 2 .* a later version wrote it"),
        (b'{"format":1}', WorkspaceDamaged, "is damaged"),
        (b'{"format":1,"files":[1]}', WorkspaceDamaged, "is damaged"),
        (b'{"format":1,"files":[],"files":[]}', WorkspaceDamaged, "is damaged"),
        (b'{"format":true,"files":[]}', WorkspaceDamaged, "is damaged"),
        (b'{"files":[]}', WorkspaceDamaged, "is damaged"),
        (b"[]", WorkspaceDamaged, "is damaged"),
        (b"\xff", WorkspaceDamaged, "is damaged"),
    ],
)
def test_a_segment_that_this_version_can_not_read_is_refused_though_its_hash_is_right(tmp_path, content, error, said):
    path = tmp_path / "certificates-0001.json"
    path.write_bytes(content)
    with pytest.raises(error, match=said) as refused:
        sealing._listed(path, fingerprint.of_bytes(content))
    assert type(refused.value) is error


def test_a_segment_with_a_field_that_is_not_known_here_is_read(tmp_path):
    path = tmp_path / "certificates-0001.json"
    path.write_bytes(b'{"files":[["a.json","ab"]],"format":1,"more":{"deep":[1]}}')
    assert sealing._listed(path, fingerprint.of_bytes(path.read_bytes())) == {"a.json": "ab"}


def test_a_later_version_keeps_what_is_sealed(sealed, versions):
    path, issued = sealed
    with Workspace.writing(path) as workspace:
        versions.put_all(versions.forgotten, workspace)
        workspace.commit(versions.forgotten, workspace.documents())
    with Workspace.reading(path) as workspace:
        assert dict(workspace.issued()) == issued
        assert workspace.damaged() == []


def test_sealed_files_can_be_left_out_of_a_search(sealed):
    with Workspace.reading(sealed[0]) as workspace:
        files = workspace.sealed_files
        assert "certificates/3.html" in files
        assert "certificates/4.json" not in files
        assert {segment.log for segment in workspace.manifest.segments} <= files
        assert all((sealed[0] / name).is_file() for name in files)


def test_a_sealed_certificate_is_not_issued_again(sealed):
    with pytest.raises(WorkspaceError, match=r"there is a certificate 1\.(json|html) already"):
        certify(sealed[0], 1)
