"""The acceptance test of exactness, through the command: learn A and forget; learn B without what was erased.

Both must hold the same checkpoints, byte for byte, and A must hold nothing of whom it forgot.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from erasable.cli.main import main
from kit.choosing import cases, pairs
from kit.in_buckets import SIZES, by_name, in_buckets_of

ODD = "the-only-one-with-a-nine-and-with-the-last-item"
LONELY = "has-one-item"
ALL = "has-every-item"
EDGE, RARE = "stands-and-falls-with-the-rare-item", "rare"
USERS, ITEMS = 24, 14
Row = tuple[str, str, int]


def made_up() -> list[Row]:
    """Ratings from 1 to 4, except one 9; one item that one user alone has; one user with one item, one with all.

    Three users have the rare item: when one of them goes, a filter of 3 computed anew would drop it, and then EDGE.
    """
    generator = np.random.default_rng(5)
    names = [f"i{number:02d}" for number in range(ITEMS)]
    rows = [(LONELY, names[3], 2)]
    rows += [(ALL, item, int(generator.integers(1, 5))) for item in names[:-1]]
    rows += [(ODD, item, 9 if item == names[-1] else 3) for item in (*names[:4], names[-1])]
    rows += [(user, RARE, 2) for user in (ODD, "u07", EDGE)] + [(EDGE, names[0], 1), (EDGE, names[1], 4)]
    for number in range(USERS):
        chosen = generator.permutation(ITEMS - 1)[: generator.integers(4, 9)]
        rows += [(f"u{number:02d}", names[item], int(generator.integers(1, 5))) for item in sorted(chosen)]
    return rows


ROWS = made_up()


def write(path: Path, rows: Sequence[Row]) -> Path:
    path.write_text("\n".join(["user_id,item_id,rating", *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@dataclass(frozen=True)
class Erasure:
    """Calls of forget, and what they are about."""

    calls: tuple[tuple[str, ...], ...]
    users: frozenset[str] = frozenset()
    pairs: frozenset[tuple[str, str]] = frozenset()

    def left(self, rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if row[0] not in self.users and row[:2] not in self.pairs]


def whole(*users: str) -> Erasure:
    return Erasure((tuple(word for user in users for word in ("--user", user)),), frozenset(users))


def items_of(user: str) -> list[str]:
    return [item for owner, item, _ in ROWS if owner == user]


ERASURES = {
    "one user": whole("u07"),
    "the only one with a rating and an item": whole(ODD),
    "the user with every item": whole(ALL),
    "several users": whole("u01", LONELY, "u11", "u20"),
    "some items": Erasure(
        (("--user", "u03", "--item", items_of("u03")[0], "--item", items_of("u03")[2]),),
        pairs=frozenset({("u03", items_of("u03")[0]), ("u03", items_of("u03")[2])}),
    ),
    "the last item of someone": Erasure((("--user", LONELY, "--item", items_of(LONELY)[0]),), frozenset({LONELY})),
    "in several calls": Erasure(
        (
            ("--user", "u05", "--item", items_of("u05")[1]),
            ("--user", ODD, "--user", "u13"),
            ("--user", "u05", "--item", items_of("u05")[0]),
            ("--user", "u00"),
        ),
        frozenset({ODD, "u13", "u00"}),
        frozenset({("u05", items_of("u05")[1]), ("u05", items_of("u05")[0])}),
    ),
}
HARD = {name: ERASURES[name] for name in ("the only one with a rating and an item", "in several calls")}
SETTINGS = {
    "nmf": ("--model", "nmf"),
    "dmf": ("--model", "dmf"),
    "holdout": ("--holdout", "0.2"),
    "filter": ("--min-interactions", "3"),
    "full budget": ("--model", "nmf", "--epoch-budget", "full"),
    "filter, holdout, dmf, full budget": (
        *("--min-interactions", "3", "--holdout", "0.2"),
        *("--model", "dmf", "--epoch-budget", "full"),
    ),
    "order by count": ("--model", "nmf", "--order", "count", "--seed", "3", "--negatives", "1"),
    "observed only": ("--model", "nmf", "--negatives", "0", "--batch", "7"),
}


def is_not_dropped(what: str, how: str) -> bool:
    """Whether a filter leaves someone who is to be forgotten."""
    return not ("filter" in how and LONELY in ERASURES[what].users)


AT_ONCE = ("--model", "nmf", "--strategy", "retrain", "--epochs", "6", "--batch", "64")
COMMON = ("--model", "nmf", "--groups", "4", "--epochs", "6", "--batch", "64")
DECLARED_SCALE = ("--rating-scale", "1", "10")


@pytest.fixture(autouse=True)
def _in_buckets(request):
    """Half of the cases have many buckets."""
    with in_buckets_of(by_name(request.node.name)):
        yield


@pytest.fixture
def erasable(monkeypatch, capsys):
    """Run the command, which must end well, and return what it says as JSON."""

    def call(*words: object) -> dict:
        monkeypatch.setattr(sys, "argv", ["erasable", *map(str, words), "--json"])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        assert (end.value.code or 0, said.err) == (0, "")
        return json.loads(said.out)

    return call


def checkpoints(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.safetensors")}


def texts_in(folder: Path) -> set[str]:
    columns = [column for path in folder.rglob("*.parquet") for column in pq.read_table(path).columns]
    return {value for column in columns for value in column.to_pylist() if isinstance(value, str)}


@pytest.fixture
def compare(erasable, tmp_path):
    """Learn A, at once or some rows later, forget, learn B without what was erased, and compare."""

    def call(
        erasure: Erasure, options_of_both: Sequence[str], *options_of_b: object, later: Sequence[Row] = ()
    ) -> None:
        a, b = tmp_path / "a", tmp_path / "b"
        at_first = [row for row in ROWS if row not in later]
        erasable("learn", write(tmp_path / "all.csv", at_first), "--into", a, *options_of_both)
        if later:
            erasable("learn", write(tmp_path / "later.csv", later), "--into", a, "--more")
        before = checkpoints(a)
        forgotten = [erasable("forget", a, *call) for call in erasure.calls]
        with in_buckets_of(SIZES["one bucket"]):  # how many A has decides nothing
            erasable(
                *("learn", write(tmp_path / "left.csv", erasure.left([*at_first, *later])), "--into", b),
                *(*options_of_both, *options_of_b),
            )
        assert checkpoints(a) == checkpoints(b)
        assert (checkpoints(a) != before) == any(one["stages_rerun"] for one in forgotten)
        if erasable("status", a)["rows"] == "solved":  # rows are in no checkpoint
            assert erasable("recommend", a, "--all") == erasable("recommend", b, "--all")
        assert erasable("verify", a)["identical"] is True
        assert_nothing_is_left(a, erasure, [path for one in forgotten for path in one["certificates"]])
        options = {*options_of_both, *options_of_b}
        if not options & {"--catalogue", "--min-interactions"}:  # what a filter kept stays frozen
            everything = [*at_first, *later]
            assert not texts_in(a) & (items_in(everything) - items_in(erasure.left(everything)))

    return call


def items_in(rows: Sequence[Row]) -> set[str]:
    return {item for _, item, _ in rows}


def assert_nothing_is_left(folder: Path, erasure: Erasure, certificates: Sequence[str]) -> None:
    assert not texts_in(folder) & erasure.users
    files = [path for path in folder.rglob("*") if path.is_file()]
    for user in erasure.users & {ODD, LONELY, ALL}:
        assert not [path for path in files if user.encode() in path.read_bytes() or user in path.name]
    issued = [Path(path).with_suffix(suffix) for path in certificates for suffix in (".json", ".html")]
    assert sorted((folder / "certificates").iterdir()) == sorted(issued)


@pytest.mark.parametrize(("erasure", "settings"), pairs(ERASURES, SETTINGS, 1, 1, is_not_dropped))
def test_laser_with_the_groups_of_the_first(compare, tmp_path, erasure, settings):
    compare(erasure, (*COMMON, *settings), "--groups-from", tmp_path / "a")


@pytest.mark.parametrize(("erasure", "settings"), pairs(ERASURES, {"nmf": ("nmf", "0"), "dmf": ("dmf", "0.2")}, 0, 2))
def test_independent_groups_without_the_groups_of_the_first(compare, tmp_path, erasure, settings):
    model, holdout = settings
    items = sorted({item for _, item, _ in ROWS})
    (tmp_path / "items.txt").write_text("\n".join(items))
    declared = ("--catalogue", str(tmp_path / "items.txt"), *DECLARED_SCALE)
    compare(erasure, (*COMMON, "--grouping", "independent", "--model", model, "--holdout", holdout, *declared))


@pytest.mark.parametrize(
    ("erasure", "settings"), pairs(ERASURES, {"nmf": ("nmf", "mean"), "dmf": ("dmf", "own")}, 0, 2)
)
def test_sisa_with_the_groups_of_the_first(compare, tmp_path, erasure, settings):
    model, aggregate = settings
    options = ("--strategy", "sisa", "--model", model, "--aggregate", aggregate, "--holdout", "0.2")
    compare(erasure, (*COMMON, *options), "--groups-from", tmp_path / "a")


def test_sisa_trains_only_the_groups_that_are_hit(erasable, tmp_path):
    shop = tmp_path / "shop"
    erasable("learn", write(tmp_path / "all.csv", ROWS), "--into", shop, *COMMON, "--strategy", "sisa")
    before = checkpoints(shop)
    planned = erasable("plan", shop, "--user", "u07")
    forgotten = erasable("forget", shop, "--user", "u07")
    assert planned["stages_rerun"] == forgotten["stages_rerun"] == 1
    assert planned["cost_ratio"] == forgotten["cost_ratio"] < 0.1
    assert len(checkpoints(shop).keys() & before.keys()) == 3


GROUPINGS = ("random", "bkm", "cbkm", "cbkm-near", "clpa", "cgmm")


@pytest.mark.parametrize(("erasure", "grouping"), pairs(HARD, {name: name for name in GROUPINGS[1:]}, 0, 1))
def test_every_grouping_with_the_groups_of_the_first(compare, tmp_path, erasure, grouping):
    compare(erasure, (*COMMON, "--grouping", grouping, "--holdout", "0.2"), "--groups-from", tmp_path / "a")


@pytest.mark.parametrize(
    ("erasure", "grouping"),
    pairs(HARD | {"some items": ERASURES["some items"]}, {name: name for name in GROUPINGS}, 0, 1),
)
def test_regrouping_with_nothing_of_the_first(compare, erasure, grouping):
    options = (*COMMON, *DECLARED_SCALE, "--policy", "regroup", "--grouping", grouping, "--holdout", "0.2")
    compare(erasure, options)


@pytest.mark.parametrize("order", ["hard", "count"])
def test_regrouping_decides_the_filter_and_the_order_anew(compare, erasable, tmp_path, order):
    options = (
        *COMMON,
        "--policy",
        "regroup",
        "--grouping",
        "bkm",
        "--order",
        order,
        "--min-interactions",
        "3",
    )
    compare(whole(ODD), (*options, *DECLARED_SCALE))
    assert EDGE not in texts_in(tmp_path / "a")  # who stood and fell with an item that the person kept above the filter
    (certificate,) = (tmp_path / "a" / "certificates").glob("*.json")
    assert [json.loads(certificate.read_text())[name] for name in ("policy", "filter")] == ["regroup", "applied anew"]


@pytest.mark.parametrize(("erasure", "settings"), pairs(ERASURES, {"nmf": ("nmf", "0.2"), "dmf": ("dmf", "0")}, 0, 2))
def test_retrain_with_nothing_of_the_first(compare, erasure, settings):
    model, holdout = settings
    compare(erasure, (*AT_ONCE, *DECLARED_SCALE, "--model", model, "--holdout", holdout))


@pytest.mark.parametrize(
    "erasure",  # the filter drops some of the others
    cases({name: ERASURES[name] for name in ("one user", "some items", "in several calls")}, ["in several calls"]),
)
def test_retrain_with_the_one_group_and_the_filter_of_the_first(compare, tmp_path, erasure):
    compare(erasure, (*AT_ONCE, "--min-interactions", "3"), "--groups-from", tmp_path / "a")


OTHER_WAYS = {
    "solved rows": (*COMMON, "--rows", "solved"),
    "solved rows of dmf": (*COMMON, "--model", "dmf", "--rows", "solved", "--holdout", "0.2"),
    "anchors": (*COMMON, "--anchors", "0.5"),
    "hardly an anchor": (*COMMON, "--anchors", "0.0001"),
    "anchors all at once": (*AT_ONCE, "--anchors", "0.5", "--holdout", "0.2"),
    "anchored als": ("--model", "als", "--factors", "6", "--regularisation", "0.5", "--anchors", "0.5"),
    "als without settings": (),
    "als of everyone": ("--model", "als", "--factors", "6", "--anchors", "1", "--holdout", "0.2"),
    "ease": ("--model", "ease", "--regularisation", "3"),
    "ease in rows of nothing": ("--model", "ease", "--rows", "solved", "--holdout", "0.2"),
    "anchored ease": ("--model", "ease", "--anchors", "0.5"),
    "ease of few neighbours": ("--model", "ease", "--neighbours", "3", "--holdout", "0.2"),
    "dense ease": ("--model", "ease", "--neighbours", "all", "--regularisation", "3"),
}


@pytest.mark.parametrize(("erasure", "options"), pairs(ERASURES, OTHER_WAYS, 1, 1))
def test_every_other_way_with_the_groups_of_the_first(compare, tmp_path, erasure, options):
    compare(erasure, options, "--groups-from", tmp_path / "a")


ON_THEIR_OWN = {
    "anchors": (*COMMON, "--grouping", "independent", "--anchors", "0.5"),
    "solved rows": (*COMMON, "--grouping", "independent", "--rows", "solved", "--holdout", "0.2"),
    "als": ("--model", "als", "--factors", "6"),
    "ease": ("--model", "ease", "--neighbours", "3"),
    "dense ease": ("--model", "ease", "--neighbours", "all"),
    "anchored ease": ("--model", "ease", "--anchors", "0.5", "--holdout", "0.2"),
}


@pytest.mark.parametrize(
    ("erasure", "options"), pairs(HARD | {"several users": ERASURES["several users"]}, ON_THEIR_OWN, 0, 1)
)
def test_a_scale_is_enough_where_nothing_is_decided_over_all(compare, erasure, options):
    compare(erasure, (*options, *DECLARED_SCALE))


@pytest.mark.parametrize("options", cases(ON_THEIR_OWN, ["anchors", "ease", "dense ease"]))
def test_what_is_declared_stays(compare, tmp_path, options):
    items = sorted(items_in(ROWS))
    (tmp_path / "items.txt").write_text("\n".join(items))
    compare(whole(ODD), (*options, "--catalogue", str(tmp_path / "items.txt"), *DECLARED_SCALE))
    assert {*items} <= texts_in(tmp_path / "a")


# Three quarters of the people of a sparse shop have something that nobody else has.
SPARSE = [(f"u{user:02d}", item, 1) for user in range(16) for item in (f"only {user}", f"also {user}", f"i{user % 5}")]
WAYS_OF_SPARSE = {
    "als": ("--model", "als", "--factors", "6", "--anchors", "1"),
    "ease": ("--model", "ease"),
    "dense ease": ("--model", "ease", "--neighbours", "all"),
    "chain": COMMON,
    "models apart": (*COMMON, "--strategy", "sisa"),
    "anchored als": ("--model", "als", "--factors", "6", "--anchors", "0.5"),
    "anchored ease": ("--model", "ease", "--anchors", "0.5"),
    "anchored chain": (*COMMON, "--anchors", "0.5"),
}


@pytest.mark.parametrize(("options", "holdout"), pairs(WAYS_OF_SPARSE, {"0": "0", "0.3": "0.3"}, 1, 0))
def test_someone_with_items_of_their_own_leaves_what_a_plain_learn_without_them_gives(
    erasable, tmp_path, options, holdout
):
    """The first thing that an expert tries; with one group nothing at all is taken from the first."""
    a, b = tmp_path / "a", tmp_path / "b"
    erasable("learn", write(tmp_path / "all.csv", SPARSE), "--into", a, *options, "--holdout", holdout)
    erasable("forget", a, "--user", "u03", "--user", "u11")
    left = write(tmp_path / "left.csv", whole("u03", "u11").left(SPARSE))
    given = ("--groups-from", a) if "--groups" in options else ()
    erasable("learn", left, "--into", b, *options, "--holdout", holdout, *given)
    assert checkpoints(a) == checkpoints(b)
    assert not texts_in(a) & {"only 3", "also 3", "only 11", "also 11", "u03", "u11"}
    assert texts_in(a) == texts_in(b)


# New people, new interactions of those who are known, and an item that was not there before.
LATER = [
    *(row for row in ROWS if row[0] in ("u20", "u21", LONELY) or row == next(r for r in ROWS if r[0] == "u03")),
    *(("u21", "a-new-item", 3), ("u05", "a-new-item", 1)),
]
LEARNED_LATER = {
    "chain": COMMON,
    "chain of dmf": (*COMMON, "--model", "dmf", "--holdout", "0.2"),
    "models apart": (*COMMON, "--strategy", "sisa"),
    "all at once": AT_ONCE,
    **OTHER_WAYS,
}


@pytest.mark.parametrize(
    ("erasure", "options"),
    pairs({name: ERASURES[name] for name in (*HARD, "one user", "several users", "some items")}, LEARNED_LATER, 0, 1),
)
def test_what_was_learned_later_is_forgotten_as_if_all_had_come_at_once(compare, tmp_path, erasure, options):
    compare(erasure, options, "--groups-from", tmp_path / "a", later=LATER)


def test_forgetting_all_who_came_later_with_a_new_item_leads_back(erasable, tmp_path):
    shop = tmp_path / "shop"
    erasable("learn", write(tmp_path / "all.csv", ROWS), "--into", shop, *COMMON, "--anchors", "0.5")
    before, held = checkpoints(shop), texts_in(shop)
    erasable("learn", write(tmp_path / "more.csv", [("zoe", "a-new-item", 3)]), "--into", shop, "--more")
    assert {"zoe", "a-new-item"} <= texts_in(shop) - held
    erasable("forget", shop, "--user", "zoe")
    assert checkpoints(shop) == before
    assert not {"zoe", "a-new-item"} & texts_in(shop)


def test_the_comparison_can_fail(erasable, tmp_path):
    """Without the groups of the first, or with one row more, the checkpoints differ."""
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    erasure = whole(ODD)
    erasable("learn", write(tmp_path / "all.csv", ROWS), "--into", a, *COMMON)
    erasable("forget", a, *erasure.calls[0])
    left = erasure.left(ROWS)
    erasable("learn", write(tmp_path / "left.csv", left), "--into", b, *COMMON)
    erasable("learn", write(tmp_path / "less.csv", left[1:]), "--into", c, *COMMON, "--groups-from", a)
    assert not checkpoints(a).keys() & checkpoints(b).keys()
    assert checkpoints(a) != checkpoints(c)


def test_the_person_decided_what_the_filter_left(erasable, tmp_path):
    """What makes their erasure hard under a filter: computed anew, it would drop an item and another person too."""
    filtered = (*COMMON, "--min-interactions", "3")
    everything = erasable("learn", write(tmp_path / "all.csv", ROWS), "--into", tmp_path / "a", *filtered)
    left = write(tmp_path / "left.csv", whole(ODD).left(ROWS))
    without = erasable("learn", left, "--into", tmp_path / "b", *filtered)
    assert (everything["users"] - without["users"], everything["items"] - without["items"]) == (2, 1)


def test_the_person_alone_shaped_the_scale_and_the_items(erasable, tmp_path):
    """What makes the erasure of the odd one hard: without them there is another scale, and an item less."""
    everything = erasable("learn", write(tmp_path / "all.csv", ROWS), "--into", tmp_path / "a", *COMMON)
    without = erasable("learn", write(tmp_path / "left.csv", whole(ODD).left(ROWS)), "--into", tmp_path / "b", *COMMON)
    assert (everything["items"], without["items"]) == (ITEMS + 1, ITEMS)
    assert (everything["rating_scale"], without["rating_scale"]) == ("1–10", "1–5")
