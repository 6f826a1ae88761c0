import pytest

from erasable.paper._workbench import Summary, crossed, labels, over_seeds, paired, pick, summary, write_csv

TABLE = [
    {"model": model, "method": method, "seed": seed, "value": value + seed}
    for model, method, value in (("nmf", "a", 1.0), ("nmf", "b", 3.0), ("dmf", "a", 5.0))
    for seed in (0, 1)
]


def test_rows_are_picked_by_their_labels():
    assert [row["value"] for row in pick(TABLE, model="nmf", method="b")] == [3.0, 4.0]
    assert pick(TABLE, request="learn") == []


def test_labels_come_in_the_order_of_the_table():
    assert labels(TABLE, "model") == ["nmf", "dmf"]


def test_a_single_value_has_no_deviation():
    assert summary([{"value": 2.0}]) == Summary(2.0, 0.0, 1)
    assert str(summary([{"value": 2.0}])) == "2.0000"
    assert str(Summary(2.0, 0.5, 3)) == "2.0000 ± 0.5000"


def test_means_and_deviations_over_seeds():
    found = over_seeds(TABLE)
    assert next(row for row, _ in found) == {"model": "nmf", "method": "a"}
    assert [one.mean for _, one in found] == [1.5, 3.5, 5.5]
    assert found[0][1].deviation == pytest.approx(0.5**0.5)


def test_pairs_differ_in_one_column_only():
    pairs = paired(TABLE, "method", "a", "b")
    assert [(one["value"], other["value"]) for one, other in pairs] == [(1.0, 3.0), (2.0, 4.0)]


def test_a_csv_has_a_column_for_each_label_and_the_value_last(tmp_path):
    write_csv([*TABLE, {"model": "nmf", "request": "learn", "value": 9.0}], tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[0] == "model,method,seed,request,value"
    assert lines[1] == "nmf,a,0,,1.0"
    assert lines[-1] == "nmf,,,learn,9.0"


def test_one_column_against_another():
    assert crossed(TABLE, "method", "model").splitlines() == [
        "| method | nmf | dmf |",
        "| --- | ---: | ---: |",
        "| a | 1.5000 ± 0.7071 | 5.5000 ± 0.7071 |",
        "| b | 3.5000 ± 0.7071 |  |",
    ]
