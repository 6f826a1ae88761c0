"""The ways whose bytes are guarded: options of the command, small data and the steps taken, for any version.

A line of ways.txt is a way: what is learned (model, strategy, where user rows come from, share of anchors, policy and
what is special about it), from which data (how many items a person has, where the catalogue comes from, ratings), and
further options of `erasable learn`. A line is never changed once a file of digests holds it; a new one may be added.
Ways below a line `since VERSION` can't be made with earlier releases. Ways that no release has stand in unreleased.txt.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from golden.shop import Service

TABLE = Path(__file__).with_name("ways.txt")
FURTHER = Path(__file__).with_name("unreleased.txt")
STEPS = ("learn", "forget one", "forget several", "learn more", "forget items")
OF_CHAINS = {"--groups": "3", "--epochs": "3", "--batch": "64"}
"""Options of models that are trained by steps, where the table gives no others."""


@dataclass(frozen=True)
class Way:
    """One way to learn, and the data to learn from."""

    model: str
    strategy: str
    rows: str
    anchors: str
    policy: str
    special: str
    table: str
    catalogue: str
    ratings: str
    given: Mapping[str, str]
    since: str = ""
    """The first release that has the way; none is named where all have it."""

    @property
    def name(self) -> str:
        """What the way is called in files and test ids."""
        words = (self.model, self.strategy, self.rows, self.anchors, self.policy, self.special)
        return "-".join(word for word in (*words, self.table, self.catalogue) if word)

    @property
    def grouping(self) -> str:
        """How users are grouped."""
        return "given" if self.special == "given" else self.given.get("--grouping", "random")

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done one after another; with a core filter nothing can be learned later."""
        return tuple(step for step in STEPS if self.special != "core" or step != "learn more")

    @cached_property
    def shop(self) -> Service:
        """The data."""
        return Service(self.table, self.ratings, self.special, self.catalogue == "declared", self.catalogue == "frozen")

    def options(self) -> list[str]:
        """Return the options of `erasable learn` that are no files, those of the model and the strategy only."""
        chosen = {"--model": self.model}
        if self.model in ("nmf", "dmf"):
            chosen |= {"--strategy": self.strategy, **OF_CHAINS}
            if self.strategy == "retrain" or self.special == "given":
                del chosen["--groups"]
        solved = self.model == "als" or (self.rows == "stage" and self.model in ("ease", "item-knn", "popular"))
        if not solved and self.strategy != "sisa":
            chosen["--rows"] = self.rows
        if self.model in ("als", "ease") or self.anchors != "1":
            chosen["--anchors"] = self.anchors
        if self.policy != "fixed":
            chosen["--policy"] = self.policy
        words = [word for option in {**chosen, **self.given}.items() for word in option]
        return [*words, *(("--rating-scale", "0", "100") if self.ratings == "percent" else ())]

    def command(self, step: str, workspace: Path, folder: Path) -> list[str]:
        """Write the files that a step needs into a folder, and return the words of its command."""
        shop = self.shop
        always = ["--threads", "1", "--quiet"]
        if step in ("learn", "learn more"):
            words = ["learn", "--into", str(workspace), *always]
            words += self.options() if step == "learn" else ["--more"]
            for option, (name, text) in shop.files(step).items():
                (folder / name).write_text(text, encoding="utf-8")
                words += [option, str(folder / name)] if option else [str(folder / name)]
            return words + (["--risk-column", "risk"] if self.special == "risk" else [])
        people = shop.forgotten(step)
        words = ["forget", str(workspace), *always, *(word for user in people for word in ("--user", user))]
        return words + [word for item in shop.forgotten_items(step) for word in ("--item", item)]

    def description(self) -> list[str]:
        """Return all that decides the bytes of the way, as text: its commands, and the files that they read."""
        told = [shlex.join(self.options()), *self.steps]
        for step in self.steps:
            if step.startswith("learn"):
                told += [text for _, text in self.shop.files(step).values()]
            else:
                told += [*self.shop.forgotten(step), *self.shop.forgotten_items(step)]
        return told


def _ways(table: Path) -> Iterator[Way]:
    since = ""
    for line in table.read_text(encoding="utf-8").splitlines():
        if line.startswith("since "):
            since = line.removeprefix("since ")
            continue
        learned, data, options = (part.split() for part in line.split("|"))
        special = learned[5] if len(learned) > 5 else ""
        given = dict(zip(options[::2], options[1::2], strict=True))
        yield Way(*learned[:5], special, *data, given, since)


def ways_of(version: str) -> list[str]:
    """Return the names of the ways that a release has."""
    return [name for name, way in WAYS.items() if not way.since or _numbers(version) >= _numbers(way.since)]


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _by_name(ways: Sequence[Way]) -> dict[str, Way]:
    named = {way.name: way for way in ways}
    if len(named) < len(ways):
        raise ValueError("two lines of the table have one name: say what is special about one of them")
    return named


WAYS = _by_name(list(_ways(TABLE)))
"""Every way of the releases by its name."""
UNRELEASED = _by_name(list(_ways(FURTHER)))
"""Ways that no release has yet, by their names."""
FROZEN = {name: replace(way, catalogue="frozen") for name, way in WAYS.items() if way.catalogue == "followed"}
"""The ways without a declared catalogue, with the items declared that 0.1 froze; by the names of those ways."""
