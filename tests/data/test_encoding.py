import numpy as np
import pyarrow as pa
import pytest

from erasable.data.ids import encode_ids, latest_of_each_pair
from erasable.errors import DataRefused


def test_codes_follow_the_bytes_of_the_texts():
    ids, codes = encode_ids(pa.chunked_array([pa.array(["b", "a"]), pa.array(["c", "b"])]))
    assert ids.texts() == ["a", "b", "c"]
    assert codes.tolist() == [1, 0, 2, 1]


def test_unused_and_repeated_categories_leave_no_trace():
    column = pa.DictionaryArray.from_arrays(pa.array([2, 1, 3]), pa.array(["z", "b", "a", "b"]))
    ids, codes = encode_ids(column)
    assert ids.texts() == ["a", "b"]
    assert codes.tolist() == [0, 1, 1]


def test_a_missing_id_is_refused():
    with pytest.raises(DataRefused, match="missing"):
        encode_ids(pa.array(["a", None]))


def test_without_time_the_last_of_a_pair_stays():
    assert latest_of_each_pair(np.array([5, 1, 5, 1, 0]), None).tolist() == [4, 3, 2]


def test_the_latest_stays_and_an_unknown_time_is_the_oldest():
    keys = np.array([1, 1, 1, 2, 2])
    time = np.array([9.0, np.nan, 8.0, np.nan, np.nan])
    assert latest_of_each_pair(keys, time).tolist() == [0, 4]


def test_at_equal_times_the_last_stays():
    assert latest_of_each_pair(np.array([1, 1, 1]), np.array([2.0, 2.0, 1.0])).tolist() == [1]
