import numpy as np
import pytest
from scipy.stats import chisquare

from erasable.data import RatingScale
from erasable.grouping.points import bipartite_graph
from erasable.paper import _hypergraph as hypergraph_module
from erasable.paper._hypergraph import nearest_hypergraph, reachable_hypergraph
from erasable.paper._walks import DEPTH, REPETITIONS, walk_hypergraph, walk_keys

# Ratings of nine users for eight items; 0 is none. Users 3, 4, 6 and 7 form a chain, and user 8 meets nobody.
RATINGS = np.array(
    [
        [5, 1, 0, 0, 0, 0, 0, 0],
        [4, 2, 5, 1, 0, 0, 0, 0],
        [0, 3, 1, 5, 0, 0, 0, 0],
        [1, 1, 4, 0, 5, 0, 0, 0],
        [0, 0, 0, 0, 1, 3, 0, 0],
        [0, 0, 2, 5, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 4, 2, 0],
        [0, 0, 0, 0, 0, 0, 5, 0],
        [0, 0, 0, 0, 0, 0, 0, 3],
    ]
)
USERS = len(RATINGS)
LONER = 8
MANY = 4000
HYPERGRAPHS = ("reach 4", "reach 6", "nearest")


@pytest.fixture(scope="module")
def graph(tables):
    rows = {
        f"u{user}": {f"i{item}": rating for item, rating in enumerate(row) if rating}
        for user, row in enumerate(RATINGS)
    }
    return bipartite_graph(tables.table(rows), RatingScale(1, 5))


def some_keys(repetitions, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, (USERS, repetitions), dtype=np.uint64)


def build(name, graph, threads=1):
    if name != "nearest":
        return reachable_hypergraph(graph, int(name.removeprefix("reach ")), threads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hypergraph_module, "NEAREST", 2)
        return nearest_hypergraph(graph, threads)


def enumerate_hypergraph(name):
    """Return which user is in which hyperedge, [hyperedge, user], and the weights there."""
    has = RATINGS > 0
    shared = has.astype(int) @ has.T
    weights = np.where(shared, (has @ RATINGS.T) / np.maximum(shared, 1), RATINGS.sum(axis=1) / has.sum(axis=1))
    if name == "nearest":
        weighted = has * np.log(1 + USERS / has.sum(axis=0))
        lengths = np.sqrt((weighted**2).sum(axis=1))
        cosines = (weighted @ weighted.T / np.outer(lengths, lengths)).round(12)
        ranks = np.argsort(np.argsort(-cosines, axis=1, kind="stable"), axis=1)
        return (ranks <= 2) & (shared > 0), weights
    return np.linalg.matrix_power(shared, int(name.removeprefix("reach ")) // 2 - 1) > 0, weights


def by_row(values):
    return values / values.sum(axis=1, keepdims=True)


def step_chances(inside, weights, sizes):
    """Return [from, to]: a hyperedge that holds `from` in proportion to its size, then a member by its weight."""
    return by_row(inside.T * sizes) @ by_row(inside * weights)


def chances(name):
    inside, weights = enumerate_hypergraph(name)
    return step_chances(inside, weights, inside.sum(axis=1))


def arrivals(walks, step):
    """Count [start, arrival]: where walks are after some steps."""
    counts = np.zeros((USERS, USERS), np.int64)
    np.add.at(counts, (walks[:, 0], walks[:, step]), 1)
    return counts


def agreement(counts, expected):
    """Return the chi-square test's chance of counts at least as far from what is expected; rows are separate."""
    possible = expected > 0
    if counts[~possible].any():
        return 0.0
    expected = expected * counts.sum(axis=1, keepdims=True)
    return chisquare(counts[possible], expected[possible], ddof=len(counts) - 1).pvalue


def test_a_step_of_two_users_by_hand(tables):
    # Both hyperedges hold both users, so either is chosen with 1/2. In that of u0 they weigh 5 and 2; in that of u1
    # they weigh 5 and (2 + 4) / 2.
    graph = bipartite_graph(tables.table({"u0": {"a": 5}, "u1": {"a": 2, "b": 4}}), RatingScale(1, 5))
    walks = walk_hypergraph(reachable_hypergraph(graph, 4, 1), some_keys(MANY)[:2], threads=1)
    for start in (0, 1):
        steps = walks[walks[:, 0] == start, 1]
        second = (2 / 7 + 3 / 8) / 2
        counts = np.bincount(steps, minlength=2)
        assert chisquare(counts, [MANY * (1 - second), MANY * second]).pvalue > 1e-3


@pytest.mark.parametrize("step", [1, 2, DEPTH])
@pytest.mark.parametrize("name", HYPERGRAPHS)
def test_walks_arrive_where_enumeration_says(graph, name, step):
    walks = walk_hypergraph(build(name, graph), some_keys(MANY), threads=2)
    assert agreement(arrivals(walks, step), np.linalg.matrix_power(chances(name), step)) > 1e-3


@pytest.mark.parametrize("name", HYPERGRAPHS)
def test_the_comparison_would_find_a_wrong_walk(graph, name):
    counts = arrivals(walk_hypergraph(build(name, graph), some_keys(MANY), threads=2), step=1)
    inside, weights = enumerate_hypergraph(name)
    sizes = inside.sum(axis=1)
    wrong = {
        "weights ignored": step_chances(inside, np.ones_like(weights), sizes),
        "sizes ignored": step_chances(inside, weights, np.ones_like(sizes)),
        "weights turned round": step_chances(inside, weights.T, sizes),
        "own hyperedge alone": by_row(inside * weights),
        "everyone alike": by_row(inside),
    }
    for what, expected in wrong.items():
        assert agreement(counts, expected) < 1e-6, what


def test_the_next_step_depends_on_the_place_alone(graph):
    walks, expected = walk_hypergraph(build("reach 4", graph), some_keys(MANY), threads=2), chances("reach 4")[3]
    possible = expected > 0
    for start in range(5):  # from user 3, who was reached from one user or another
        passing = walks[(walks[:, 0] == start) & (walks[:, 1] == 3), 2]
        counts = np.bincount(passing, minlength=USERS)
        assert len(passing) > MANY / 20
        assert chisquare(counts[possible], expected[possible] * len(passing)).pvalue > 1e-3


@pytest.mark.parametrize("name", HYPERGRAPHS)
def test_threads_change_no_byte(graph, name):
    alone, two, five = (walk_hypergraph(build(name, graph), some_keys(50), threads) for threads in (1, 2, 5))
    assert alone.tobytes() == two.tobytes() == five.tobytes()


def test_a_walk_depends_on_the_key_of_its_own_user_and_repetition(graph):
    hypergraph, keys = build("reach 4", graph), some_keys(20)
    changed = keys.copy()
    changed[3, 5:] = some_keys(20, seed=1)[3, 5:]
    before, after = (walk_hypergraph(hypergraph, some, 1).reshape(USERS, 20, -1) for some in (keys, changed))
    same = (before == after).all(axis=2)
    assert same[np.arange(USERS) != 3].all()
    assert same[3, :5].all()
    assert not same[3, 5:].all()


def test_a_user_s_walks_lie_together_and_start_from_the_user(graph):
    walks = walk_hypergraph(build("reach 4", graph), some_keys(3), threads=1)
    assert walks.shape == (USERS * 3, DEPTH + 1)
    assert walks[:, 0].tolist() == np.repeat(np.arange(USERS), 3).tolist()


@pytest.mark.parametrize("name", HYPERGRAPHS)
def test_who_meets_nobody_stays_alone(graph, name):
    walks = walk_hypergraph(build(name, graph), some_keys(50), threads=1)
    assert (walks[walks[:, 0] == LONER] == LONER).all()
    assert (walks[walks[:, 0] != LONER] != LONER).all()


def test_walks_are_four_of_depth_8_as_in_the_paper():
    assert (REPETITIONS, DEPTH) == (4, 8)
    assert walk_keys(0, ["a", "b", "c"]).shape == (3, 4)


def test_the_keys_of_walks_follow_the_seed_and_the_user_s_own_id():
    keys = dict(zip("abcd", walk_keys(5, "abcd").tolist(), strict=True))
    assert walk_keys(5, "db").tolist() == [keys["d"], keys["b"]]
    everything = np.concatenate([walk_keys(seed, "abcd").ravel() for seed in (5, 6)])
    assert len(set(everything.tolist())) == 2 * 4 * REPETITIONS
