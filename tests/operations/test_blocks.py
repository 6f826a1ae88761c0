"""An erasure writes the blocks that it touches, and gives the bytes of a fresh learn; what is done to them is told."""

import random
import shutil
from pathlib import Path

import pytest

from erasable.errors import WorkspaceError
from erasable.operations import DiskStorage, recommend, verify
from erasable.operations._vocabulary import own_vocabulary
from erasable.scan import Target, scan_folder
from erasable.workspace import Workspace
from kit import small_shop, sparse_shop
from kit.copies import copy_of
from kit.killing import at_changes, killed_at
from kit.tampering import flipped, notices, seal_again

PERSON = "person-3-0"


@pytest.fixture(scope="module", autouse=True)
def blocks_of_a_community():
    with sparse_shop.in_blocks():
        yield


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    """A workspace that has learned; to be copied."""
    return sparse_shop.learned(tmp_path_factory.mktemp("blocks") / "shop", sparse_shop.table())


@pytest.fixture(scope="module")
def forgotten(shop, tmp_path_factory) -> Path:
    """What forgetting one person leaves; to be copied."""
    path = copy_of(shop, tmp_path_factory.mktemp("blocks") / "shop")
    small_shop.forget_in(path, PERSON)
    return path


def reason(path: Path) -> str:
    """Return why a workspace does not verify."""
    try:
        found = verify(DiskStorage(path))
    except WorkspaceError as error:
        return str(error)
    assert found.identical is False
    return found.reason


def blocks_in_manifest(path: Path) -> tuple[str, ...]:
    with Workspace.reading(path) as workspace:
        (link,) = workspace.manifest.chain
    return link.blocks


def test_a_block_for_each_community(shop):
    assert len(sparse_shop.blocks_of(shop)) == sparse_shop.COMMUNITIES
    assert [*blocks_in_manifest(shop)] == sparse_shop.blocks_of(shop)


def test_an_erasure_writes_the_blocks_that_it_touches_and_gives_the_bytes_of_a_fresh_learn(shop, tmp_path):
    path = copy_of(shop, tmp_path / "shop")
    with sparse_shop.blocks_created() as created:
        small_shop.forget_in(path, PERSON)
    before, after = blocks_in_manifest(shop), blocks_in_manifest(path)
    assert [place for place in range(len(before)) if before[place] != after[place]] == [3]
    assert [f"checkpoints/{name}" for name in created] == [after[3]]
    assert sparse_shop.blocks_of(path) == [*after]
    for name in set(before) & set(after):
        assert (path / name).stat().st_mtime_ns == (shop / name).stat().st_mtime_ns
    fresh = sparse_shop.learned(tmp_path / "fresh", sparse_shop.table(without=[PERSON]))
    assert small_shop.lasting_files(path) == small_shop.lasting_files(fresh)
    assert verify(DiskStorage(path)).identical is True


def test_when_an_item_goes_the_blocks_behind_it_are_others(tmp_path):
    source = sparse_shop.table(own="person-2-0")
    path = sparse_shop.learned(tmp_path / "shop", source)
    before = blocks_in_manifest(path)
    with sparse_shop.blocks_created() as created:
        small_shop.forget_in(path, "person-2-0")
    after = blocks_in_manifest(path)
    assert before[:2] == after[:2]
    assert len(created) == len(set(after) - set(before)) == len(after) - 2
    fresh = sparse_shop.learned(tmp_path / "fresh", sparse_shop.table(without=["person-2-0"]))
    assert small_shop.lasting_files(path) == small_shop.lasting_files(fresh)


def test_the_size_of_blocks_reaches_no_byte_of_a_model_and_no_name_of_a_checkpoint(shop, tmp_path):
    with sparse_shop.in_blocks(10 * sparse_shop.ONE_COMMUNITY):
        other = sparse_shop.learned(tmp_path / "shop", sparse_shop.table())
    assert len(blocks_in_manifest(other)) == 1
    found = []
    for path in (shop, other):
        with Workspace.reading(path) as workspace:
            (link,) = workspace.state().chain
            arrays = workspace.checkpoints.get(link.fingerprint).arrays()
        found.append((link.fingerprint, {name: array.tobytes() for name, array in arrays.items()}))
    assert found[0] == found[1]
    assert recommend(DiskStorage(shop), [PERSON]) == recommend(DiskStorage(other), [PERSON])


@pytest.mark.full
@at_changes
def test_a_forget_killed_at_any_change_is_finished_by_the_next_one(shop, forgotten, swift_path, moments):
    for change in moments(lambda: small_shop.forget_in(copy_of(shop, swift_path / "undisturbed" / "shop"), PERSON)):
        path = copy_of(shop, swift_path / str(change) / "shop")
        died = killed_at(change, lambda path=path: small_shop.forget_in(path, PERSON))
        with DiskStorage(path).reading() as session:
            assert session.damaged() == []
        assert small_shop.unnamed_files(path) == []
        small_shop.forget_in(path, *([PERSON] if sparse_shop.blocks_of(path) == sparse_shop.blocks_of(shop) else []))
        assert small_shop.lasting_files(path) == small_shop.lasting_files(forgotten)
        assert small_shop.unnamed_files(path) == []
        if not died:
            break
    assert change > 20


def test_a_block_that_no_manifest_names_is_swept(shop, forgotten, tmp_path):
    path = copy_of(forgotten, tmp_path / "shop")
    (old,) = {*sparse_shop.blocks_of(shop)} - {*sparse_shop.blocks_of(path)}
    shutil.copy(shop / old, path / old)
    with Workspace.reading(path):
        pass
    assert not (path / old).exists()


def test_a_missing_block_is_told(forgotten, tmp_path):
    path = copy_of(forgotten, tmp_path / "shop")
    block = blocks_in_manifest(path)[1]
    (path / block).unlink()
    assert reason(path).startswith(f"damaged or missing: {block}")
    with Workspace.reading(path) as workspace, pytest.raises(WorkspaceError, match=f"{block} is missing"):
        workspace.checkpoints.get(workspace.state().chain[0].fingerprint)


def test_a_block_that_is_a_link_is_told(forgotten, tmp_path):
    path = copy_of(forgotten, tmp_path / "shop")
    block = path / blocks_in_manifest(path)[1]
    block.rename(tmp_path / "elsewhere")
    block.symlink_to(tmp_path / "elsewhere")
    assert f"{block} is a link, and what lies elsewhere is not erased" in reason(path)


def test_a_flipped_bit_in_any_block_is_told(forgotten):
    chance = random.Random(0)
    for block in blocks_in_manifest(forgotten):
        with flipped(forgotten / block, chance):
            assert notices(forgotten, None)
            assert reason(forgotten).startswith(f"damaged or missing: {block}")


@pytest.mark.parametrize(("how", "said"), [("as it is", "damaged or missing"), ("sealed again", "at number 25")])
def test_two_blocks_in_each_others_place_are_told(forgotten, tmp_path, how, said):
    path = copy_of(forgotten, tmp_path / "shop")
    one, other = (path / blocks_in_manifest(path)[place] for place in (2, 5))
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    if how == "sealed again":
        seal_again(path)
    assert said in reason(path)


@pytest.mark.parametrize(("how", "said"), [("as it is", "damaged or missing"), ("sealed again", "differ")])
def test_a_block_of_the_version_before_is_told(shop, forgotten, tmp_path, how, said):
    path = copy_of(forgotten, tmp_path / "shop")
    shutil.copy(shop / blocks_in_manifest(shop)[3], path / blocks_in_manifest(path)[3])
    if how == "sealed again":
        seal_again(path)
    assert said in reason(path)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (lambda blocks: [blocks[1], blocks[0], *blocks[2:]], "start at number 5 instead of 0"),
        (lambda blocks: blocks[:-1], "it has 40 items, and its blocks hold 35"),
        (lambda blocks: [*blocks, blocks[-1]], "start at number 35 instead of 40"),
        (lambda blocks: [], "it holds more than a checkpoint"),
    ],
)
def test_a_manifest_that_names_blocks_in_another_way_is_told(forgotten, tmp_path, other, said):
    path = copy_of(forgotten, tmp_path / "shop")
    with Workspace.reading(path) as workspace:
        (link,) = workspace.manifest.model_dump(mode="json")["chain"]
    seal_again(path, chain=[{**link, "blocks": other(link["blocks"])}])
    assert said in reason(path)


def test_blocks_are_searched_and_their_words_are_nobody(forgotten):
    assert [path.name for path in forgotten.rglob("*") if not own_vocabulary().names.fullmatch(path.name)] == []
    words = [Target(word) for word in ("block", "blocks", "items", "shared.weights", "borders", "0", "5", "40")]
    assert scan_folder(forgotten, words, own_vocabulary()).residues == ()


def test_a_name_planted_in_a_block_is_found(forgotten, tmp_path):
    path = copy_of(forgotten, tmp_path / "shop")
    block = path / blocks_in_manifest(path)[0]
    content = block.read_bytes()
    block.write_bytes(content[:-12] + b"\0person-3-0\0")
    assert [residue.file for residue in scan_folder(path, [Target(PERSON)], own_vocabulary()).residues] == [
        blocks_in_manifest(path)[0]
    ]
