"""The comparison finds whatever is not the same: one bit, one array, one name."""

from copy import deepcopy

import numpy as np
import pytest

from golden.digests import differences, digests_of
from golden.reading import Reading, Trained


def reading(**changes):
    shared = changes.get("shared", np.arange(6, dtype="<f4").reshape(2, 3))
    rows = changes.get("rows", np.arange(4, dtype="<f4").reshape(2, 2))
    solved = (Trained(1, "user rows", "user", rows),)
    return Reading((Trained(0, "shared", "item", shared),), solved, {"user": dict(zip("ba", rows, strict=True))}, True)


def made(read):
    return {"description": "a way", "steps": {"learn": digests_of(read)}}


def flipped(array):
    """Return the array with the last bit of its first number the other way round."""
    changed = array.copy()
    changed.view("<u4").flat[0] ^= 1
    return changed


def test_equal_arrays_do_not_differ():
    assert differences(made(reading()), made(reading())) == []


def test_one_flipped_bit_of_a_shared_array_is_found():
    shared = flipped(reading().stages[0].array)
    found = differences(made(reading()), made(reading(shared=shared)))
    assert found == ["learn: stages, 0 shared item: has other bytes"]


def test_one_flipped_bit_of_a_user_row_is_found_in_its_file_and_among_all_rows():
    rows = flipped(reading().solved[0].array)
    found = differences(made(reading()), made(reading(rows=rows)))
    assert found == ["learn: solved, 1 user rows user: has other bytes", "learn: rows, user: has other bytes"]


def test_a_sign_of_zero_is_found():
    negative = reading().stages[0].array.copy()
    negative[0, 0] = -0.0
    assert differences(made(reading()), made(reading(shared=negative)))


def test_another_type_and_another_shape_are_found():
    wide = reading().stages[0].array.astype("<f8")
    assert differences(made(reading()), made(reading(shared=wide))) == [
        "learn: stages, 0 shared item: has other type and bytes"
    ]
    turned = reading().stages[0].array.reshape(3, 2)
    assert differences(made(reading()), made(reading(shared=turned))) == [
        "learn: stages, 0 shared item: has other shape"
    ]


@pytest.mark.parametrize("kind", ["stages", "solved", "rows"])
class TestOneRecord:
    def test_that_is_missing_is_found(self, kind):
        found = made(reading())
        found["steps"]["learn"][kind].pop()
        assert len(differences(made(reading()), found)) == 1
        assert differences(made(reading()), found)[0].endswith(": is missing")

    def test_that_is_new_is_found(self, kind):
        golden = made(reading())
        golden["steps"]["learn"][kind].pop()
        assert differences(golden, made(reading()))[0].endswith(": is new")

    def test_that_has_another_name_is_found(self, kind):
        found = made(reading())
        found["steps"]["learn"][kind][0][-4] = "renamed"
        assert [line.split(": ")[-1] for line in differences(made(reading()), found)] == ["is missing", "is new"]


def test_a_step_that_is_missing_is_found():
    golden = made(reading())
    golden["steps"]["forget one"] = deepcopy(golden["steps"]["learn"])
    assert differences(golden, made(reading())) == ["forget one: is missing"]


def test_a_way_that_was_changed_is_no_way_to_compare():
    assert "add another one" in differences(made(reading()), {**made(reading()), "description": "another"})[0]


def test_rows_are_compared_without_files_where_a_version_keeps_none():
    bare = Reading(reading().stages, None, reading().rows, True)
    assert differences(made(reading()), made(bare)) == []
    swapped = Reading(bare.stages, None, {"user": dict(zip("ab", reading().solved[0].array, strict=True))}, True)
    assert differences(made(reading()), made(swapped)) == ["learn: rows, user: has other bytes"]


def test_rows_in_another_order_of_files_are_the_same_rows():
    rows = reading().rows["user"]
    turned = Reading(reading().stages, None, {"user": dict(reversed(rows.items()))}, True)
    assert differences(made(reading()), made(turned)) == []
