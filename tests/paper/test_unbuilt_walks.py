import numpy as np
import pytest
from scipy.stats import chisquare

from erasable.data import RatingScale
from erasable.grouping.points import bipartite_graph
from erasable.paper._walks import DEPTH, walk_unbuilt

# Ratings of seven users for six items; 0 is none. User 4 meets user 3 alone, and user 6 meets nobody.
HANDMADE = np.array(
    [
        [5, 1, 0, 0, 0, 0],
        [4, 2, 5, 1, 0, 0],
        [0, 3, 1, 5, 0, 0],
        [1, 1, 4, 0, 5, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 2, 5, 0, 0],
        [0, 0, 0, 0, 0, 3],
    ]
)
LONER = 6
# Users 0 and 1 have everything, users 2 to 4 little of it: most proposals among the first two are rejected.
LOPSIDED = np.array(
    [
        [1, 2, 3, 4, 5, 5, 4, 3, 2, 1],
        [5, 5, 5, 5, 5, 1, 1, 1, 1, 1],
        [5, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 1, 5],
        [0, 0, 3, 0, 0, 4, 0, 0, 0, 0],
    ]
)
TABLES = {"handmade": HANDMADE, "lopsided": LOPSIDED}
MANY = 4000


@pytest.fixture(scope="module")
def graph_of(tables):
    def build(ratings):
        rows = {
            f"u{user}": {f"i{item}": rating for item, rating in enumerate(row) if rating}
            for user, row in enumerate(ratings)
        }
        return bipartite_graph(tables.table(rows), RatingScale(1, 5))

    return build


@pytest.fixture(scope="module")
def many_walks(graph_of):
    return {name: walk_unbuilt(graph_of(table), some_keys(len(table), MANY), 2) for name, table in TABLES.items()}


def some_keys(users, repetitions, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, (users, repetitions), dtype=np.uint64)


def by_row(values):
    return values / values.sum(axis=1, keepdims=True)


def shared_items(ratings):
    """Return [user, other]: how many items they share, and the sum of the other's ratings of those."""
    has = (ratings > 0).astype(int)
    return has @ has.T, has @ ratings.T


def chances(ratings):
    """Return [from, to]: a hyperedge that holds `from` in proportion to its size, then a member by its mean rating."""
    shared, summed = shared_items(ratings)
    inside = shared > 0
    return by_row(inside * inside.sum(axis=1)) @ by_row(summed / np.maximum(shared, 1))


def arrivals(walks, step):
    """Count [start, arrival]: where walks are after some steps."""
    users = walks[:, 0].max() + 1
    counts = np.zeros((users, users), np.int64)
    np.add.at(counts, (walks[:, 0], walks[:, step]), 1)
    return counts


def agreement(counts, expected):
    """Return the chi-square test's chance of counts at least as far from what is expected; rows are separate."""
    possible = expected > 0
    if counts[~possible].any():
        return 0.0
    expected = expected * counts.sum(axis=1, keepdims=True)
    return chisquare(counts[possible], expected[possible], ddof=len(counts) - 1).pvalue


@pytest.mark.parametrize("step", [1, 2, DEPTH])
@pytest.mark.parametrize("name", TABLES)
def test_walks_arrive_where_enumeration_says(many_walks, name, step):
    expected = np.linalg.matrix_power(chances(TABLES[name]), step)
    assert agreement(arrivals(many_walks[name], step), expected) > 1e-3


@pytest.mark.parametrize("name", TABLES)
def test_the_comparison_would_find_a_wrong_walk(many_walks, name):
    shared, summed = shared_items(TABLES[name])
    inside = shared > 0
    sizes, mean = inside.sum(axis=1), summed / np.maximum(shared, 1)
    wrong = {
        "weights ignored": by_row(inside * sizes) @ by_row(inside),
        "sizes ignored": by_row(inside) @ by_row(mean),
        "hyperedge not rejected": by_row(shared * shared.sum(axis=1)) @ by_row(mean),
        "hyperedge rejected for its first pair only": by_row(inside * shared.sum(axis=1)) @ by_row(mean),
        "member not rejected": by_row(inside * sizes) @ by_row(summed),
        "everyone alike": by_row(inside),
    }
    counts = arrivals(many_walks[name], step=1)
    for what, expected in wrong.items():
        assert agreement(counts, expected) < 1e-6, what


def test_the_next_step_depends_on_the_place_alone(many_walks):
    walks, expected = many_walks["handmade"], chances(HANDMADE)[3]
    possible = expected > 0
    for start in range(LONER):  # from user 3, who was reached from one user or another
        passing = walks[(walks[:, 0] == start) & (walks[:, 1] == 3), 2]
        counts = np.bincount(passing, minlength=len(HANDMADE))
        assert len(passing) > MANY / 20
        assert chisquare(counts[possible], expected[possible] * len(passing)).pvalue > 1e-3


def test_threads_change_no_byte(graph_of):
    graph, keys = graph_of(HANDMADE), some_keys(len(HANDMADE), 50)
    alone, two, five = (walk_unbuilt(graph, keys, threads) for threads in (1, 2, 5))
    assert alone.tobytes() == two.tobytes() == five.tobytes()


def test_a_walk_depends_on_the_key_of_its_own_user_and_repetition(graph_of):
    users = len(HANDMADE)
    keys, changed = some_keys(users, 20), some_keys(users, 20)
    changed[3, 5:] = some_keys(users, 20, seed=1)[3, 5:]
    graph = graph_of(HANDMADE)
    before, after = (walk_unbuilt(graph, some, 1).reshape(users, 20, -1) for some in (keys, changed))
    same = (before == after).all(axis=2)
    assert same[np.arange(users) != 3].all()
    assert same[3, :5].all()
    assert not same[3, 5:].all()


def test_a_user_s_walks_lie_together_and_start_from_the_user(graph_of):
    walks = walk_unbuilt(graph_of(HANDMADE), some_keys(7, 3), threads=1)
    assert walks.shape == (7 * 3, DEPTH + 1)
    assert walks[:, 0].tolist() == np.repeat(np.arange(7), 3).tolist()


def test_who_meets_nobody_stays_alone(many_walks):
    walks = many_walks["handmade"]
    assert (walks[walks[:, 0] == LONER] == LONER).all()
    assert (walks[walks[:, 0] != LONER] != LONER).all()


def test_every_user_is_told_once(graph_of):
    told = []
    walk_unbuilt(graph_of(HANDMADE), some_keys(7, 4), 2, told.append)
    assert sum(told) == 7
