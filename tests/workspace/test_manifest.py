import json
from pathlib import Path

import pytest

from erasable import fingerprint
from erasable.errors import WorkspaceDamaged, WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.manifest import decode_manifest, encode_manifest, named_files

RELEASED = Path(__file__).parents[1] / "fixtures" / "workspaces"


@pytest.fixture
def manifest(learned):
    with Workspace.reading(learned) as workspace:
        return workspace.manifest


def test_a_manifest_comes_back_the_same(manifest):
    assert decode_manifest(encode_manifest(manifest), "manifest.json") == manifest


def test_a_manifest_can_not_be_changed_in_place(manifest):
    with pytest.raises(ValueError, match="frozen"):
        manifest.version = 7


def test_a_changed_field_breaks_the_seal(manifest):
    changed = manifest.model_copy(update={"version": 7})
    with pytest.raises(WorkspaceDamaged, match="is damaged"):
        decode_manifest(encode_manifest(changed), "manifest.json")
    assert decode_manifest(encode_manifest(changed.sealed()), "manifest.json").version == 7


def test_the_same_words_written_otherwise_are_noticed(manifest):
    with pytest.raises(WorkspaceDamaged):
        decode_manifest(encode_manifest(manifest) + b" ", "manifest.json")


def test_a_scale_is_written_as_it_is_read(manifest):
    # A stage's fingerprint covers it, and JSON tells 5 from 5.0.
    assert repr(manifest.scale.high) == "5.0"


def written(fields) -> bytes:
    return (json.dumps(fields, indent=2, ensure_ascii=False) + "\n").encode()


def with_a_file_for_each_group(manifest) -> dict:
    """Return the fields of a manifest in the shape of before format 5."""
    fields = json.loads(encode_manifest(manifest))
    counts = fields.pop("counts")
    names = {counts[name] for name in ("items", "slots", "histories")}
    names |= {bucket["file"] for bucket in fields.pop("buckets")}
    fields["files"] = {name: digest for name, digest in fields["files"].items() if name not in names}
    for group in fields["groups"]:
        group["file"] = f"data/group-00{group['position']}-0123456789ab.parquet"
    fields["holdout"] = {"file": "holdout/held-out-0123456789ab.parquet", "users": 7, "interactions": 9}
    for part in (*fields["groups"], fields["holdout"]):
        fields["files"][part["file"]] = "ab" * 32
    return fields


def as_0_2_wrote_it(manifest, **changes) -> bytes:
    """Format 4: a file for each group, sealed over its bytes."""
    return sealed(with_a_file_for_each_group(manifest) | {"format": 4} | changes)


def as_0_1_wrote_it(manifest, **changes) -> bytes:
    """Format 3: no preferences, one environment, sealed over the canonical form of what it says."""
    fields = with_a_file_for_each_group(manifest) | {"format": 3} | changes
    fields["environment"] = fields.pop("environments")[0]
    for link in fields["chain"]:
        link.pop("environment")
    for name in ("fingerprint", "preferences", "segments"):
        fields.pop(name)
    return written(fields | {"fingerprint": fingerprint.of_value(fields)})


OLD = [(as_0_1_wrote_it, 3, "0.1"), (as_0_2_wrote_it, 4, "0.2")]


@pytest.mark.parametrize(("write", "number", "release"), OLD)
def test_a_manifest_of_an_earlier_release_says_the_same(manifest, write, number, release):
    read = decode_manifest(write(manifest), "manifest.json")
    assert (read.written_in, manifest.written_in, read.sealed().written_in) == (number, 5, 5)
    assert read.names == release
    apart = ("fingerprint", "names", "buckets", "counts")
    said = json.loads(encode_manifest(read))
    expected = with_a_file_for_each_group(manifest)
    assert (said["buckets"], said["counts"]) == ([], None)
    assert {name: said[name] for name in said if name not in apart} == {
        name: expected[name] for name in expected if name not in apart
    }
    named = {part["file"] for part in (*expected["groups"], expected["holdout"])}
    assert named <= named_files(read) <= {*expected["files"]}


@pytest.mark.parametrize(("write", "number", "release"), OLD)
def test_amended_it_is_of_the_newest_format_and_keeps_its_names(manifest, write, number, release):
    read = decode_manifest(write(manifest), "manifest.json").sealed()
    again = decode_manifest(encode_manifest(read), "manifest.json")
    assert (again, again.written_in, again.names) == (read, 5, release)


def test_what_0_2_kept_of_0_1_keeps_its_names(manifest):
    assert decode_manifest(as_0_2_wrote_it(manifest, names="0.1"), "manifest.json").names == "0.1"


@pytest.mark.parametrize("write", [as_0_1_wrote_it, as_0_2_wrote_it])
@pytest.mark.parametrize("part", ["holdout", "group"])
def test_in_an_earlier_release_every_group_and_the_holdout_has_a_file(manifest, write, part):
    fields = with_a_file_for_each_group(manifest)
    if part == "group":
        del fields["groups"][1]["file"]
    change = {"holdout": None} if part == "holdout" else {"groups": fields["groups"]}
    with pytest.raises(WorkspaceDamaged):
        decode_manifest(write(manifest, **change), "manifest.json")


@pytest.mark.parametrize(("release", "number"), [("0.1", 3), ("0.2", 4)])
def test_a_manifest_that_a_release_wrote_is_read(release, number):
    content = (RELEASED / release / "ease" / "workspace" / "manifest.json").read_bytes()
    manifest = decode_manifest(content, "manifest.json")
    assert (manifest.written_in, manifest.names, manifest.counts, manifest.buckets) == (number, release, None, ())
    assert {part.file for part in (*manifest.groups, manifest.holdout)} <= named_files(manifest) <= {*manifest.files}
    with pytest.raises(WorkspaceDamaged):
        decode_manifest(content.replace(b'"users": ', b'"users": 1', 1), "manifest.json")


@pytest.mark.parametrize("name", ["ease", "buckets"])
def test_one_that_0_3_wrote_names_buckets_instead(name):
    content = (RELEASED / "0.3" / name / "workspace" / "manifest.json").read_bytes()
    manifest = decode_manifest(content, "manifest.json")
    assert (manifest.written_in, manifest.counts is not None) == (5, True)
    assert (len(manifest.buckets) > 1) == (name == "buckets")
    assert {bucket.file for bucket in manifest.buckets} <= named_files(manifest) <= {*manifest.files}
    with pytest.raises(WorkspaceDamaged):
        decode_manifest(content.replace(b'"users": ', b'"users": 1', 1), "manifest.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields.pop("counts"),
        lambda fields: fields.pop("buckets"),
        lambda fields: fields["buckets"].clear(),
        lambda fields: fields["buckets"].reverse(),
        lambda fields: fields["buckets"].append(fields["buckets"][-1]),
        lambda fields: fields["buckets"].pop(0),
        lambda fields: fields["buckets"][0].update(slot=1),
        lambda fields: fields["buckets"][-1].update(slot=4096),
        lambda fields: fields["buckets"][0].update(slot=-1),
        lambda fields: fields["counts"].update(held_out=-1),
    ],
)
def test_buckets_have_counts_and_lie_in_the_order_of_their_slots(dealt_out, tmp_path, change):
    fields = json.loads((dealt_out.learn(tmp_path / "shop") / "manifest.json").read_bytes())
    assert decode_manifest(sealed(dict(fields)), "manifest.json").written_in == 5
    change(fields)
    with pytest.raises(WorkspaceDamaged):
        decode_manifest(sealed(fields), "manifest.json")


@pytest.mark.parametrize("write", [as_0_1_wrote_it, as_0_2_wrote_it])
def test_a_changed_byte_of_an_earlier_release_is_noticed(manifest, write):
    content = write(manifest)
    for changed in (content + b" ", content.replace(b'"version": 1', b'"version": 2'), content[:-1]):
        assert changed != content
        with pytest.raises(WorkspaceDamaged):
            decode_manifest(changed, "manifest.json")


def test_a_field_of_a_newer_version_is_kept_and_covered(manifest):
    fields = json.loads(encode_manifest(manifest))
    fields.pop("fingerprint")
    content = written(fields | {"colour": "green", "fingerprint": ""})
    sealed = content.replace(b'"fingerprint": ""', b'"fingerprint": "%s"' % fingerprint.of_bytes(content).encode())
    newer = decode_manifest(sealed, "manifest.json")
    assert encode_manifest(newer) == sealed
    with pytest.raises(WorkspaceDamaged):
        decode_manifest(sealed.replace(b"green", b"brown"), "manifest.json")


@pytest.mark.parametrize("found", [2, 0, -1, True, "5", 5.0, None, [5], {}])
def test_another_format_is_refused_by_name(manifest, found):
    with pytest.raises(WorkspaceDamaged, match="which no release wrote: restore it from a copy"):
        decode_manifest(written({"format": found}), "manifest.json")


@pytest.mark.parametrize("found", [6, 2**70])
def test_a_newer_format_is_told_as_such(found):
    with pytest.raises(WorkspaceError, match=f"format {found} and this version .* up to 5: a later version wrote it"):
        decode_manifest(written({"format": found}), "manifest.json")


def sealed(fields) -> bytes:
    """Write a manifest as a newer version would: only its bytes are sealed."""
    fields.pop("fingerprint")
    content = written(fields | {"fingerprint": ""})
    return content.replace(b'"fingerprint": ""', b'"fingerprint": "%s"' % fingerprint.of_bytes(content).encode())


@pytest.mark.parametrize("more", [1, -0.5, "é", None, [1, [2]], {"deep": {"er": 2**70}}], ids=str)
def test_fields_of_a_newer_version_outlive_a_commit(dealt_out, tmp_path, more):
    versions, learned = dealt_out, dealt_out.learn(tmp_path / "shop")
    fields = json.loads((learned / "manifest.json").read_bytes())
    records = ("scale", "catalogue", "preferences")
    lists = ("groups", "buckets", "chain")
    for part in (
        fields,
        *(fields[name] for name in (*records, "counts")),
        *(one for name in lists for one in fields[name]),
    ):
        part["more"] = more
    note = learned / "data" / "note.json"
    note.write_bytes(b"{}")
    fields["files"]["data/note.json"] = fingerprint.of_bytes(b"{}")
    (learned / "manifest.json").write_bytes(sealed(fields))
    with Workspace.writing(learned) as workspace:
        assert workspace.newer
        workspace.state()
        versions.put_all(versions.forgotten, workspace)
        workspace.commit(versions.forgotten, workspace.documents())
        workspace.amend(workspace.documents())
    found = json.loads((learned / "manifest.json").read_bytes())
    assert [part["more"] for part in (found, *(found[name] for name in records))] == [more] * 4
    # What is about a group, a bucket, a step, or the counts, that is another now goes with it.
    assert "more" not in found["counts"]
    for name, what in (("groups", "users"), ("buckets", "file"), ("chain", "file")):
        same = [one[what] == old[what] for one, old in zip(found[name], fields[name], strict=True)]
        assert 0 < sum(same) < len(same)
        assert ["more" in one for one in found[name]] == same
    assert found["files"]["data/note.json"] == fields["files"]["data/note.json"]
    assert note.exists()


def test_nothing_is_newer_in_what_this_version_writes(learned):
    with Workspace.reading(learned) as workspace:
        assert not workspace.newer


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"version": 1', '"version": 2, "version": 1'),
        lambda text: text.replace('"version": 1', '"version": 1, "more": NaN'),
        lambda text: text.replace('"version": 1', '"version": 1, "more": 1e999'),
        lambda text: text.replace('"version": 1', '"version": 1, "more": "\\ud800"'),
        lambda text: text.replace('"version": 1', '"version": 1, "more": ' + "9" * 5000),
        lambda text: text.replace('"version": 1', f'"version": 1, "more": {"[" * 400}{"]" * 400}'),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text + "\n",
    ],
)
def test_what_two_readers_may_read_differently_is_damage_though_its_seal_is_right(manifest, change):
    text = change(encode_manifest(manifest.model_copy(update={"fingerprint": ""})).decode())
    seal = fingerprint.of_bytes(text.encode())
    content = text.replace('"fingerprint": ""', f'"fingerprint": "{seal}"').encode()
    with pytest.raises(WorkspaceDamaged):
        decode_manifest(content, "manifest.json")
