"""A link leads out of the workspace: what lies there is not erased with it, and is nobody's to sweep."""

import os
import shutil
from pathlib import Path

import pytest

from erasable.errors import WorkspaceDamaged, WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.files import FOLDERS, own_files
from kit.resealing import with_fields

RELEASED = Path(__file__).parents[1] / "fixtures" / "workspaces" / "0.2"
OPENED = (Workspace.reading, Workspace.writing, lambda path: Workspace.reading(path, sweeping=False))
LINKED = ["data", "checkpoints", "certificates", "manifest.json", "config.json", "signing-key.txt"]


def linked(folder: Path, name: str) -> Path:
    """Move a file or a folder of a workspace out of it, and put a link in its place."""
    outside = folder.with_name("outside") / name
    outside.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(folder / name, outside)
    (folder / name).symlink_to(outside)
    return outside


@pytest.mark.parametrize("opened", OPENED)
@pytest.mark.parametrize("name", [*LINKED, "data/*", "checkpoints/*", "certificates/*"])
def test_a_linked_file_or_folder_is_refused_and_the_remedy_works(every_kind, opened, name):
    place = sorted(every_kind.glob(name))[0].relative_to(every_kind).as_posix()
    outside = linked(every_kind, place)
    with (
        pytest.raises(WorkspaceDamaged, match=f"{place} is a link.*replace it by what it points to"),
        opened(every_kind),
    ):
        pass
    (every_kind / place).unlink()
    shutil.move(outside, every_kind / place)
    with opened(every_kind) as workspace:
        assert workspace.damaged() == []


@pytest.mark.parametrize("opened", OPENED)
@pytest.mark.parametrize("name", ["holdout", "holdout/*", "data"])
def test_so_it_is_in_a_workspace_of_0_2(tmp_path, opened, name):
    old = Path(shutil.copytree(RELEASED / "ease" / "workspace", tmp_path / "shop"))
    test_a_linked_file_or_folder_is_refused_and_the_remedy_works(old, opened, name)


@pytest.mark.parametrize("opened", OPENED)
@pytest.mark.parametrize("name", FOLDERS)
def test_nothing_is_swept_through_a_linked_folder(every_kind, content_of, opened, name):
    (every_kind / name).mkdir(exist_ok=True)
    outside = linked(every_kind, name)
    (outside / "letters").mkdir()
    (outside / "letters" / "to-a-friend.txt").write_text("mine")
    (outside / "photo.jpg").write_text("mine")
    before = content_of(outside)
    with pytest.raises(WorkspaceDamaged), opened(every_kind):
        pass
    assert content_of(outside) == before
    assert not any(file.startswith(f"{name}/") for file in own_files(every_kind))


def test_a_folder_that_becomes_a_link_meanwhile_is_not_swept_through(versions, learned, tmp_path):
    mine = tmp_path / "mine"
    with Workspace.writing(learned) as workspace:
        workspace.state()
        versions.put_all(versions.forgotten, workspace)
        shutil.copytree(learned / "data", mine)
        (mine / "letter.txt").write_text("mine")
        shutil.rmtree(learned / "data")
        (learned / "data").symlink_to(mine)
        with pytest.raises(WorkspaceError, match="data is a link"):
            workspace.commit(versions.forgotten, versions.after_forgetting)
    assert (mine / "letter.txt").exists()


def test_a_link_that_nothing_names_is_removed_and_what_it_leads_to_stays(learned, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("mine")
    (learned / "data" / "more").symlink_to(tmp_path / "mine")
    with Workspace.reading(learned):
        pass
    assert not os.path.lexists(learned / "data" / "more")
    assert (tmp_path / "mine" / "letter.txt").read_text() == "mine"


def test_the_workspace_itself_may_be_reached_by_a_link(learned, tmp_path):
    (tmp_path / "here").symlink_to(learned)
    with Workspace.reading(tmp_path / "here") as workspace:
        assert workspace.damaged() == []


def test_nobody_learns_through_a_link_that_a_killed_learn_did_not_leave(versions, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "writer.lock").touch()
    (tmp_path / "shop" / "data").symlink_to(tmp_path / "mine")
    with pytest.raises(WorkspaceError, match="is not empty: give a new folder"):
        versions.learn(tmp_path / "shop")
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(learned):
    (file,) = learned.glob("data/bucket-*")
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(WorkspaceDamaged, match="is not a file: restore"), Workspace.reading(learned):
        pass


NO_NAMES = ["../shop/{}", "/dev/null", "{}/", "./{}", "a//{}", "data/../{}", "", "..", "data/\0", "data\n/{}", 7, None]
PLACES = {
    "config": lambda fields, name: fields.update(config=name),
    "group": lambda fields, name: fields["groups"][0].update(file=name),
    "holdout": lambda fields, name: fields.update(holdout={"file": name, "users": 1, "interactions": 1}),
    "bucket": lambda fields, name: fields["buckets"][0].update(file=name),
    "items": lambda fields, name: fields["counts"].update(items=name),
    "slots": lambda fields, name: fields["counts"].update(slots=name),
    "histories": lambda fields, name: fields["counts"].update(histories=name),
    "catalogue": lambda fields, name: fields["catalogue"].update(file=name),
    "link": lambda fields, name: fields["chain"][0].update(file=name),
    "certificate": lambda fields, name: fields.update(certificates=[name]),
    "audit": lambda fields, name: fields.update(audit=name),
    "requests": lambda fields, name: fields.update(requests=name),
    "segments": lambda fields, name: fields.update(segments=[{"certificates": name, "log": name, "erasures": 1}]),
    "files": lambda fields, name: None,
}


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_plain_name_inside_the_folder_is_damage(learned, place, name):
    if name is None and place in ("group", "catalogue", "audit", "requests", "files"):
        pytest.skip("there may be none")
    named = name.format("config.json") if isinstance(name, str) else name

    def put(fields):
        PLACES[place](fields, named)
        under = f"certificates/{named}" if place == "certificate" else named
        fields["files"][str(under)] = fields["files"]["config.json"]

    if place == "files" and name == 7:
        pytest.skip("a name in JSON is a text")
    with_fields(learned, put)
    for opened in OPENED:
        with pytest.raises(WorkspaceDamaged, match=r"manifest\.json is damaged: restore"), opened(learned):
            pass


@pytest.mark.parametrize("name", ["notes.txt", "manifest.json", "manifest.json.new", "writer.lock", "other/x.parquet"])
def test_a_file_that_would_not_be_swept_is_none_of_ours(learned, name):
    """Else a person's data, kept under a name of nobody's, would stay when they are erased."""
    (learned / "other").mkdir()

    def put(fields):
        held = fields["buckets"][0]["file"]
        (learned / name).write_bytes((learned / held).read_bytes())
        fields["buckets"][0]["file"] = name
        fields["files"][name] = fields["files"][held]

    before = (learned / "manifest.json").read_bytes()
    with_fields(learned, put)
    if name == "manifest.json":
        (learned / name).write_bytes(before)
        with_fields(learned, lambda fields: (put(fields), (learned / name).write_bytes(before)))
    with pytest.raises(WorkspaceDamaged, match=r"manifest\.json is damaged"), Workspace.reading(learned):
        pass


@pytest.mark.parametrize("place", [place for place in PLACES if place != "files"])
def test_a_file_without_its_hash_is_damage(learned, place):
    with_fields(learned, lambda fields: PLACES[place](fields, "data/bucket-009.parquet"))
    for opened in OPENED:
        with pytest.raises(WorkspaceDamaged, match=r"manifest\.json is damaged"), opened(learned):
            pass
