"""The small data of a way: who has what, who comes later and who is forgotten; drawn by hash, the same everywhere.

Somebody who was forgotten never comes back, and no more than eight people are forgotten at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

USERS = ("007", "7", "Zoë", "ä ö", *(f"u{number:02d}" for number in range(4, 42)))
ITEMS = ("10", "9", "ß", *(f"i{number:02d}" for number in range(3, 24)))
NEWCOMERS = tuple(f"v{number}" for number in range(4))
NEW_ITEM = "zz-new"
"""An item that nobody has at first; its id comes last."""
NEVER_HAD = ("a-never-had", "zz-never-had")
"""Items of a declared catalogue that nobody ever has."""
ONE = ("u05",)
SEVERAL = ("7", "u11", "u17", "u40")
LEFT = {"u05": "only-u05", "u11": "only-u11"}
"""People who are forgotten, and an item that nobody else has."""
RATINGS = {
    "stars": ("1", "2", "3", "4", "5"),
    "half": ("0.5", "1", "2.5", "4", "5"),
    "unit": ("0", "0.25", "0.5", "1"),
    "ten": ("1", "4", "7", "10"),
    "zero-five": ("0", "1", "3", "5"),
    "zero-ten": ("0", "2", "6", "10"),
    "percent": ("0", "12.5", "60", "100"),
    "implicit": (),
}
"""What a rating may be; none at all where a row says only that it happened."""
Rows = list[tuple[str, str]]


def _draw(*what: object) -> float:
    """Return a number from 0 up to 1 that depends on the words given and on nothing else."""
    return int.from_bytes(sha256(repr(what).encode()).digest()[:7], "big") / 2**56


@dataclass(frozen=True)
class Service:
    """Interactions, declared items and requests: `dense` is data of which every group has every item."""

    table: str
    ratings: str
    special: str
    declared: bool
    frozen: bool = False
    """Whether those items are declared that the data have, as 0.1 froze them without being told."""

    def files(self, step: str) -> dict[str, tuple[str, str]]:
        """Return what `learn` reads in a step, each by its option: the name and the text of a file."""
        rows = self.first if step == "learn" else self.later
        found = {"": (f"{step.replace(' ', '-')}.csv", self._text(rows))}
        if step == "learn" and self.special == "given":
            found["--groups-from"] = ("groups.csv", self._groups())
        if self.frozen or (self.declared and (step == "learn" or self.special == "extended")):
            found["--catalogue"] = (f"{step.replace(' ', '-')}-items.txt", self._items(step))
        if self.special.startswith("features"):
            found["--items"] = (f"{step.replace(' ', '-')}-attributes.csv", self._attributes(step))
        return found

    def forgotten(self, step: str) -> tuple[str, ...]:
        """Return who is forgotten in a step, wholly or in part."""
        return {"forget one": ONE, "forget several": SEVERAL, "forget items": ("u20",)}[step]

    def forgotten_items(self, step: str) -> tuple[str, ...]:
        """Return which items of the one person are forgotten, if not everything is."""
        held = [item for user, item in self.first if user == "u20"]
        return tuple(held[1::3]) if step == "forget items" else ()

    @cached_property
    def first(self) -> Rows:
        """Who has what at first."""
        rows = [(user, item) for user in USERS for item in ITEMS if self._has(user, item)]
        if self.table == "sparse":
            rows += [*LEFT.items(), *((user, "9") for user in USERS if (user, "9") not in rows)]
        return sorted(rows, key=lambda row: _draw("order", row))

    @cached_property
    def later(self) -> Rows:
        """What comes later: new people, more of people who are there, and an item that is new."""
        gone = {*ONE, *SEVERAL}
        there = [user for user in USERS if user not in gone]
        rows = [(user, item) for user in NEWCOMERS for item in ITEMS if self._comes(user, item)]
        chosen = there if self.table == "dense" else there[3::9]
        rows += [(user, NEW_ITEM) for user in (*chosen, *NEWCOMERS[:2])]
        known = set(self.first)
        rows += [(user, item) for user in there[::6] for item in ITEMS[::5] if (user, item) not in known]
        return sorted(rows, key=lambda row: _draw("order", row))

    def _has(self, user: str, item: str) -> bool:
        likes = USERS.index(user) % 3 == ITEMS.index(item) % 3
        share = 0.85 if self.table == "dense" else 0.6 if likes else 0.18
        return _draw("has", self.table, user, item) < share

    def _comes(self, user: str, item: str) -> bool:
        number = NEWCOMERS.index(user) + ITEMS.index(item)
        return number % 4 != 0 if self.table == "dense" else number % 5 == 0

    def _text(self, rows: Rows) -> str:
        """Write rows as CSV; with repeats some stand twice, and of those the later one counts."""
        lines = [self._line(row, 0) for row in rows]
        if self.special == "repeated":
            lines += [self._line(row, 1) for row in rows[::4]]
        header = ["user_id", "item_id", *(["rating"] if RATINGS[self.ratings] else [])]
        header += {"repeated": ["time"], "risk": ["risk"]}.get(self.special, [])
        return "".join(f"{','.join(line)}\n" for line in [header, *lines])

    def _line(self, row: tuple[str, str], again: int) -> list[str]:
        choices = RATINGS[self.ratings]
        line = [*row, *([choices[int(_draw("rating", row, again) * len(choices))]] if choices else [])]
        if self.special == "repeated":
            line.append(str(1_600_000_000 + int(_draw("time", row, again) * 10**7)))
        if self.special == "risk":
            line.append(f"{_draw('risk', row[0]):.3f}")
        return line

    def _groups(self) -> str:
        places = {user: int(_draw("group", user) * 3) for user in USERS}
        return "".join(["user_id,group,position\n", *(f"{user},{place},{place}\n" for user, place in places.items())])

    def _attributes(self, step: str) -> str:
        """Write attributes of most items, later of a new one too; some values are shared, and one item has two."""
        items = [*ITEMS[:-4], *NEVER_HAD, *LEFT.values(), *([NEW_ITEM] if step == "learn more" else [])]
        rows = [f"{item},m{int(_draw('maker', item) * 6)},{int(_draw('kind', item) * 3)}" for item in items]
        return "".join(f"{row}\n" for row in ["item_id,maker,kind", f"{ITEMS[-4]},m1|m2,", *rows])

    def _items(self, step: str) -> str:
        if self.frozen:
            rows = self.first if step == "learn" else [*self.first, *self.later]
            return "".join(f"{item}\n" for item in sorted({item for _, item in rows}))
        items: Iterable[str] = {*ITEMS, *LEFT.values(), *NEVER_HAD}
        if self.special != "extended" or step == "learn more":
            items = {*items, NEW_ITEM}
        return "".join(f"{item}\n" for item in sorted(items))
