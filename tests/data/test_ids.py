import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.data import Ids
from erasable.errors import DataRefused

distinct_texts = st.lists(st.text(min_size=1, max_size=4), unique=True, max_size=80)


def test_ids_are_text_as_written():
    ids = Ids.of(["7", "007", " 7"])
    assert ids.texts() == ["7", "007", " 7"]
    assert ids[1] == "007"
    assert ids.positions([" 7", "7", "07"]).tolist() == [2, 0, -1]


def test_the_order_is_that_of_utf8_bytes():
    assert Ids.of(["é", "z", "Z", "10", "9", "😀", "￿"]).sorted().texts() == [
        "10",
        "9",
        "Z",
        "z",
        "é",
        "￿",
        "😀",
    ]


def test_repeated_ids_are_refused():
    with pytest.raises(DataRefused, match="distinct"):
        Ids.of(["a", "b", "a"])


@pytest.mark.parametrize("bad", [[None], [3], ["\ud800"]])
def test_what_is_no_text_is_refused(bad):
    with pytest.raises(DataRefused, match="text"):
        Ids.of(bad)


def test_no_ids_are_fine():
    assert len(Ids.of([])) == 0
    assert "a" not in Ids.of([])
    assert Ids.of([]).digest() == Ids.of([]).take([]).digest()


def test_ids_are_equal_when_texts_and_order_are():
    assert Ids.of("ab") == Ids.of(["a", "b"])
    assert Ids.of("ab") != Ids.of("ba")
    assert Ids.of("ab") != ["a", "b"]


def test_the_digest_tells_where_an_id_ends():
    assert Ids.of(["ab", "c"]).digest() != Ids.of(["a", "bc"]).digest()


def test_a_slice_has_the_digest_of_its_own_texts():
    assert Ids(Ids.of(["x", "yy", "z"]).array[1:]).digest() == Ids.of(["yy", "z"]).digest()


@given(distinct_texts, st.lists(st.text(max_size=4), max_size=80))
def test_positions_are_those_of_a_plain_list(texts, asked):
    ids = Ids.of(texts)
    expected = [texts.index(text) if text in texts else -1 for text in asked]
    assert ids.positions(asked).tolist() == expected
    assert Ids.of(sorted(texts)).positions(texts).tolist() == [sorted(texts).index(text) for text in texts]


@given(distinct_texts)
def test_sorting_is_by_bytes_and_by_code_points(texts):
    assert Ids.of(texts).sorted().texts() == sorted(texts) == sorted(texts, key=str.encode)


@given(distinct_texts.filter(len), st.data())
def test_removing_one_id_changes_nothing_about_the_others(texts, data):
    gone = data.draw(st.integers(0, len(texts) - 1))
    others = [place for place in range(len(texts)) if place != gone]
    kept = Ids.of(texts).take(others)
    assert kept.texts() == [texts[place] for place in others]
    assert kept.digest() == Ids.of(kept.texts()).digest()
    assert texts[gone] not in kept
