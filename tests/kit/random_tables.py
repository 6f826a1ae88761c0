"""Made-up tables of interactions with awkward ids and awkward people, drawn from a generator alone."""

import csv
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

Generator = np.random.Generator
Pair = tuple[str, str]


class Row(NamedTuple):
    """One line of the file, as it is written there; what the file has no column for is empty."""

    user: str
    item: str
    rating: str
    time: str

    @property
    def pair(self) -> Pair:
        """The user and the item."""
        return self.user, self.item


@dataclass(frozen=True)
class Table:
    """The rows of a file in their order, the columns they fill, and what is declared about them.

    `odd` names people in whom erasure is hardest: with every item, with one, alone with an item, alone with the highest
    rating. `extra` items stand in a declared catalogue and in no row.
    """

    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    scale: tuple[str, str]
    odd: tuple[str, ...]
    extra: tuple[str, ...]

    @property
    def pairs(self) -> frozenset[Pair]:
        """Who has what."""
        return frozenset(row.pair for row in self.rows)

    @property
    def items(self) -> list[str]:
        """The items of the rows and the extra ones."""
        return sorted({row.item for row in self.rows} | set(self.extra))


_COLUMNS = {"user_id": "user", "item_id": "item", "rating": "rating", "timestamp": "time"}
# The n-th id of a kind; neighbours are easily taken for one another.
_MARKS = (",", '"', "::", "-", "'", ";", "|", "\t", "--user", "#", "\\", "null", "%")
ID_KINDS: dict[str, Callable[[int], str]] = {
    "plain": lambda n: f"id{n}",
    "numbers": lambda n: "0" * (n % 3) + str(7 + n // 3),
    "unicode": lambda n: unicodedata.normalize(("NFC", "NFD")[n % 2], f"Zoë Ωλ 用户 🛒 {n // 2}"),
    "spaces": lambda n: (" ", "", "")[n % 3] + f"ann {n // 3}" + ("", " ", "")[n % 3],
    "long": lambda n: "a-long-one-" * 40 + str(n),
    "marks": lambda n: _MARKS[n % len(_MARKS)] + str(n // len(_MARKS)),
}
# The ratings that may be given, and the scale that contains them; nothing but 1 may also go without a column.
SCALES: dict[str, tuple[tuple[str, ...], tuple[str, str]]] = {
    "implicit": (("1",), ("1", "1")),
    "0–1": (("0", "0.25", "1"), ("0", "1")),
    "1–5": (("1", "2", "3", "4", "5"), ("1", "5")),
    "0.5–5": (("0.5", "1", "2.5", "3.5", "4", "5"), ("0.5", "5")),
    "1–10": (("1", "2", "3", "4", "7", "9"), ("1", "10")),
    "0–10": (("0", "1", "3", "5.5", "10"), ("0", "10")),
    "0–100": (("0", "20", "35", "99.5", "100"), ("0", "100")),
}
ODDITIES = ("every item", "one item", "only one with an item", "only one with the highest rating")


def draw_table(generator: Generator) -> Table:
    """Draw 5 to 60 users and 5 to 40 items, who has what, and the file's columns and order."""
    users = draw_ids(generator, int(generator.integers(5, 61)))
    *items, spare = draw_ids(generator, int(generator.integers(5, 41)) + 1)
    owned = _draw_owned(generator, users, items)
    odd = {oddity: user for oddity, user in zip(ODDITIES, users, strict=False) if generator.random() < 0.5}
    _make_odd(owned, odd, items)
    values, scale = SCALES[str(generator.choice(list(SCALES)))]
    highest = odd.get("only one with the highest rating")
    ratings = _draw_ratings(generator, owned, values, highest)
    columns = ["user_id", "item_id", *(["rating"] if len(values) > 1 or generator.random() < 0.3 else [])]
    timed = generator.random() < 0.5
    rows = _with_times(generator, ratings, values[0]) if timed else [Row(*pair, ratings[pair], "") for pair in ratings]
    columns += ["timestamp"] if timed else []
    extra = (spare,) if generator.random() < 0.5 else ()
    shuffled = tuple(rows[place] for place in generator.permutation(len(rows)))
    return Table(shuffled, tuple(columns), scale, tuple(sorted(set(odd.values()))), extra)


def draw_ids(generator: Generator, count: int) -> list[str]:
    """Draw distinct ids of one kind, or of all kinds together, in no order."""
    kinds = list(ID_KINDS.values())
    chosen = kinds if generator.random() < 0.3 else [kinds[generator.integers(len(kinds))]]
    made = dict.fromkeys(chosen[n % len(chosen)](n // len(chosen)) for n in range(count))
    assert len(made) == count
    return [list(made)[place] for place in generator.permutation(count)]


def core(pairs: Collection[Pair], minimum: int) -> frozenset[Pair]:
    """Return what a filter leaves: users and items with fewer pairs are dropped until nobody is."""
    while True:
        users, items = Counter(user for user, _ in pairs), Counter(item for _, item in pairs)
        kept = frozenset(pair for pair in pairs if users[pair[0]] >= minimum and items[pair[1]] >= minimum)
        if len(kept) == len(pairs):
            return kept
        pairs = kept


def by_user(pairs: Collection[Pair]) -> dict[str, list[str]]:
    """Return the items of each user, everything in order."""
    owned: dict[str, list[str]] = {}
    for user, item in sorted(pairs):
        owned.setdefault(user, []).append(item)
    return owned


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> Path:
    """Write a CSV file with the columns that there are."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([getattr(row, _COLUMNS[column]) for column in columns] for row in rows)
    return path


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    """Write one text a line, as it is."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def _draw_owned(generator: Generator, users: list[str], items: list[str]) -> dict[str, set[str]]:
    most = int(generator.integers(1, len(items) + 1))
    counts = generator.integers(1, most + 1, len(users))
    chosen = [generator.permutation(len(items))[:count] for count in counts]
    return {user: {items[place] for place in places} for user, places in zip(users, chosen, strict=True)}


def _make_odd(owned: dict[str, set[str]], odd: dict[str, str], items: list[str]) -> None:
    if user := odd.get("every item"):
        owned[user] = set(items)
    if user := odd.get("one item"):
        owned[user] = {items[0]}
    if user := odd.get("only one with an item"):
        for other in owned.values():
            other.discard(items[-1])
        owned[user].add(items[-1])
    for user in [user for user, has in owned.items() if not has]:
        owned[user] = {items[0]}


def _draw_ratings(
    generator: Generator, owned: dict[str, set[str]], values: tuple[str, ...], highest: str | None
) -> dict[Pair, str]:
    """Rate everything; if someone alone gives the highest rating, that is the whole of their generosity."""
    usual = values[: max(1, len(values) // 2)] if highest else values
    pairs = [(user, item) for user, has in owned.items() for item in sorted(has)]
    ratings = {pair: usual[generator.integers(len(usual))] for pair in pairs}
    if highest:
        ratings[highest, min(owned[highest])] = values[-1]
    return ratings


def _with_times(generator: Generator, ratings: dict[Pair, str], lowest: str) -> list[Row]:
    """Give each row its own time; some times are unknown, and some pairs stand there twice, the later one counting."""
    dated = generator.random() < 0.5
    rows = []
    for number, (pair, rating) in enumerate(ratings.items()):
        time = f"2020-01-01T00:00:00.{number:06d}" if dated else str(10**9 + number)
        chance = generator.random()
        rows.append(Row(*pair, rating, "" if chance < 0.05 else time))
        if chance > 0.95:
            rows.append(Row(*pair, lowest, ""))
    return rows
