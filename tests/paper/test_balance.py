import numpy as np
import pytest

from erasable.data import split_holdout
from erasable.grouping import GroupingSettings
from erasable.grouping.balanced_clustering import plain_k_means
from erasable.grouping.groups import user_space
from erasable.grouping.points import ALONE, bipartite_graph
from erasable.paper._balance import EXPERIMENT, measure
from erasable.paper._cells import ExperimentSettings
from erasable.paper._report import save_figure
from erasable.paper._workbench import SPACES
from kit.small_bench import small_bench

EVEN, UNEVEN = ([2, 2], [1, 1, 1, 1]), ([3, 1], [3, 1, 0, 0])


def table(*sizes_of_spaces, seeds=1):
    return [
        {"space": space, "seed": seed, **row}
        for seed in range(seeds)
        for space, sizes in zip(SPACES.values(), sizes_of_spaces, strict=True)
        for row in EXPERIMENT.values({"sizes": sizes})
    ]


@pytest.mark.parametrize(
    ("spaces", "verdict"),
    [
        ((UNEVEN, UNEVEN, UNEVEN), "holds"),
        ((UNEVEN, EVEN, EVEN), "holds in part"),
        ((EVEN, EVEN, EVEN), "does not hold"),
    ],
)
def test_the_claim_holds_if_the_largest_group_is_far_above_the_mean(spaces, verdict):
    (claim,) = EXPERIMENT.claims(table(*spaces))
    assert claim.verdict == verdict


def test_two_groups_do_not_count():
    barely = ([2, 2], [3, 1, 0, 0])
    assert EXPERIMENT.claims(table(barely, barely, barely))[0].verdict == "holds"
    alone = ([2, 2],)
    assert EXPERIMENT.claims(table(alone, alone, alone)) == []


def test_rows_are_sizes_and_their_ratios_to_the_mean():
    rows = EXPERIMENT.values({"sizes": [[6, 2]]})
    assert [(row["metric"], row["value"]) for row in rows] == [
        *(("users", 6), ("users", 2)),
        *(("largest / mean", 1.5), ("smallest / mean", 0.5)),
    ]
    assert [row["place"] for row in rows[:2]] == [1, 2]


def test_the_table_names_each_space_and_number_of_groups():
    text = EXPERIMENT.tables(table(UNEVEN, EVEN, EVEN, seeds=2))
    assert "| rating rows | 4 | 3.0000 ± 0.0000 | 0.0000 ± 0.0000 |" in text
    assert text.count("\n") == 2 + 3 * 2


def test_the_grid_leaves_out_the_single_group_and_asks_for_nothing_that_training_decides():
    entries = EXPERIMENT.entries(ExperimentSettings(groups=(1, 2, 4), seeds=2), "data")
    assert [entry.labels for entry in entries[:3]] == [{"space": space, "seed": 0} for space in SPACES.values()]
    assert len({entry.cell.name for entry in entries}) == 6
    assert all(entry.cell.details["groups"] == [2, 4] for entry in entries)
    assert set(entries[0].cell.settings) == {"strategy", "seed", "holdout", "min_interactions"}


@pytest.mark.parametrize("space", SPACES)
def test_what_is_measured_is_plain_k_means_of_the_training_part(space, tmp_path):
    bench = small_bench(tmp_path)
    entries = EXPERIMENT.entries(ExperimentSettings(groups=(1, 2, 4), seeds=2, holdout=0.2), "data")
    (entry,) = [entry for entry in entries if entry.labels == {"space": SPACES[space], "seed": 1}]
    training, _ = split_holdout(bench.interactions, 0.2, 1)
    settings = GroupingSettings(grouping=space)
    points = user_space(bipartite_graph(training, bench.scale), training.users, settings, 1, ALONE)
    expected = [sorted(np.bincount(plain_k_means(points, groups, 1, 1), minlength=groups))[::-1] for groups in (2, 4)]
    found = EXPERIMENT.table([entry], lambda cell: measure(bench, cell))
    assert measure(bench, entry.cell) == {"sizes": expected}
    assert sum(row["value"] for row in found if row["metric"] == "users" and row["groups"] == 4) == 60


@pytest.mark.full
@pytest.mark.parametrize("seeds", [3, pytest.param(1, marks=pytest.mark.full)])
def test_the_figure_can_be_drawn(seeds, tmp_path):
    (figure,) = EXPERIMENT.figures(table(EVEN, EVEN, UNEVEN, seeds=seeds)).values()
    assert len(figure.axes) == 3 * 2
    assert all(axis.get_ylim()[0] == 0 and axis.get_ylim()[1] > 3 for axis in figure.axes)
    assert all(file.stat().st_size > 5_000 for file in save_figure(figure, tmp_path / "balance"))
