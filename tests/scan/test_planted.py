"""Residues planted in each kind of file, of each kind, are found; the same file with somebody else in it is clean."""

import pytest

from kit.residues import IDS, LONG_IDS, ROWS, TEXTS, VECTORS, parquet


@pytest.mark.parametrize("plant", IDS.values(), ids=IDS)
@pytest.mark.parametrize("length", ["short", "long"])
def test_an_id_is_found(request, tmp_path, scan, plant, length):
    erased, other = request.getfixturevalue(length)
    plant(tmp_path, erased)
    assert "id" in {residue.what for residue in scan(erased.user).residues}
    assert scan(other.user).clean


@pytest.mark.parametrize("plant", IDS.values(), ids=IDS)
@pytest.mark.parametrize("length", ["short", "long"])
def test_somebody_elses_id_is_no_residue(request, tmp_path, scan, plant, length):
    erased, other = request.getfixturevalue(length)
    plant(tmp_path, other)
    assert scan(erased.user, held=(other.user,)).residues == ()


@pytest.mark.parametrize("plant", LONG_IDS.values(), ids=LONG_IDS)
def test_a_long_id_is_found_among_other_text_and_bytes(tmp_path, scan, long, plant):
    erased, other = long
    plant(tmp_path, erased)
    assert {residue.what for residue in scan(erased.user).residues} == {"id"}
    assert scan(other.user).clean


@pytest.mark.parametrize("plant", LONG_IDS.values(), ids=LONG_IDS)
def test_a_longer_id_that_is_held_is_no_residue_of_the_shorter(tmp_path, scan, long, plant):
    erased, other = long
    plant(tmp_path, other)
    assert scan(erased.user, held=(other.user,)).residues == ()


@pytest.mark.parametrize("plant", LONG_IDS.values(), ids=LONG_IDS)
def test_what_nobody_is_called_explains_no_hit(tmp_path, scan, long, plant):
    erased, other = long
    plant(tmp_path, other)
    parquet(tmp_path / "data", {"user_id": [other.user]})
    assert not scan(erased.user, held=("somebody-else",)).clean


@pytest.mark.parametrize(
    ("plant", "what"),
    [
        pytest.param(plant, what, id=f"{what}: {name}")
        for what, plants in (("interactions", ROWS), ("personal row", VECTORS), ("text", TEXTS))
        for name, plant in plants.items()
    ],
)
class TestValues:
    def test_they_are_found_without_an_id(self, tmp_path, scan, short, plant, what):
        erased, _ = short
        plant(tmp_path, erased)
        assert {residue.what for residue in scan(erased.target).residues} == {what}

    def test_those_of_somebody_else_are_no_residue(self, tmp_path, scan, short, plant, what):
        erased, other = short
        plant(tmp_path, other)
        assert scan(erased.target).residues == ()
