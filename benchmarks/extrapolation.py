"""From what scale.py measured to a hundred million people with 100 rows each: each step, and what breaks first.

    scripts/bench extrapolation [--workers 16] [--memory 256]

Nothing is measured here. scale_growth.py says how each part grows; its seconds are those of one core. On several
workers those of a search of files are divided evenly, which is what runs on workers today, and all share one network.
The tables are written to results/extrapolation.md.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from erasable.data.slots import SLOTS
from erasable.wording import duration
from reporting import RESULTS, documented_parser, markdown_table, save
from scale import KEPT, MANY, SIZES, Size
from scale_growth import (
    AMOUNTS,
    TARGET,
    Measured,
    batch_costs,
    beyond_start,
    disk_line,
    is_preliminary,
    largest_of,
    measured_in,
    memory_line,
    rows_of_a_bucket,
    seconds_line,
    smallest_that,
    touched,
)

NETWORK = 1.25
"""GB a second: 10 Gbit/s, which all workers share."""
ROWS_OF_A_PERSON = TARGET.interactions // TARGET.users
REQUESTS_OF_A_DAY = 0.001 / 365  # of the people: 1 in 1,000 asks in a year
PEOPLE_IN_A_LARGE_BUCKET = 75_000
HOUR, DAY = 3_600.0, 86_400.0
GROWS = 1.1
"""An exponent from which on a line is not enough."""


@dataclass(frozen=True)
class Volumes:
    """What lies in the shared folder, in GB."""

    source: float
    dealt: float
    """Rows dealt out while a source is read: two ids and their offsets, not compressed."""
    als: float
    ease: float
    bucket: float

    @staticmethod
    def of(measured: Measured, size: Size) -> "Volumes":
        """Return what a size has."""
        largest = largest_of(measured, "make")
        bytes_of_a_row = measured["make"][largest]["made"]["bytes"] / SIZES[largest].interactions
        ids = len(size.person(0)) + 1 + max(4, len(str(size.items)))
        als = disk_line(measured, "learn-als").at(size.interactions)
        return Volumes(
            source=bytes_of_a_row * size.interactions / 1e9,
            dealt=(8 + ids) * size.interactions / 1e9,
            als=als,
            ease=disk_line(measured, "learn-ease").at(size.interactions),
            bucket=als * rows_of_a_bucket(size) / size.interactions,
        )


@dataclass(frozen=True)
class Step:
    """Something that is done: what its seconds and its memory grow with, and what goes over the network."""

    name: str
    part: str
    seconds: str
    memory: str
    traffic: Callable[[Volumes, Size], float]
    divides: bool = False
    """Whether workers share it today; of an erasure they share the search."""
    memory_of: str | None = None
    """The part whose memory it is, if not its own."""
    forgotten: tuple[int, bool] | None = None
    """Of a batch with ALS: how many are forgotten, and whether anchors are among them."""


STEPS = (
    Step("learn, ALS", "learn-als", "rows", "rows", lambda v, s: v.source + 2 * v.dealt + 2 * v.als),
    Step("learn, EASE", "learn-ease", "pairs of items", "rows", lambda v, s: v.source + 2 * v.dealt + 2 * v.ease),
    Step(
        "search all files for one who is there",
        "scan-als",
        "rows",
        "rows of a bucket",
        lambda v, s: v.als,
        divides=True,
    ),
    Step(
        "forget one, ALS, no anchor",
        "forget-one-als",
        "rows",
        "rows of a bucket",
        lambda v, s: v.als + 2 * v.bucket,
        forgotten=(1, False),
    ),
    Step(
        "forget 1,000, ALS, no anchor",
        "forget-1000-als",
        "rows",
        "rows of a bucket",
        lambda v, s: v.als + 2 * v.bucket * touched(round(v.als / v.bucket), MANY),
        forgotten=(MANY, False),
    ),
    Step(
        "forget an anchor, ALS",
        "forget-anchor-als",
        "rows",
        "rows",
        lambda v, s: 2 * v.als + 2 * v.bucket,
        memory_of="learn-als",  # the same stage, and measured at ten million
        forgotten=(1, True),
    ),
    Step("forget one, EASE", "forget-one-ease", "pairs of items", "rows", lambda v, s: 2 * v.ease + 2 * v.bucket),
    Step(
        "recommend to one, ALS",
        "recommend-als",
        "rows of a bucket",
        "rows of a bucket",
        lambda v, s: v.bucket + _factors_gb(s),
    ),
    Step(
        "serve, ALS: until the first answer",
        "serve-als",
        "rows of a bucket",
        "rows",
        lambda v, s: v.bucket + _factors_gb(s),
    ),
)


def _factors_gb(size: Size) -> float:
    return 64 * 4 * size.items / 1e9


@dataclass(frozen=True)
class WorkedOut:
    """What a step would take."""

    seconds: float
    """Of one core."""
    seconds_at_most: float
    """The same if the measured growth, faster than in a line, goes on."""
    exponent: float | None
    memory: float
    traffic: float
    divided: float
    """How many of the seconds workers share."""

    def on(self, workers: int) -> float:
        """Return the seconds on so many workers with one network."""
        return max(self.computing(workers), self.traffic / NETWORK)

    def computing(self, workers: int) -> float:
        """Return the seconds on so many workers, however fast the network is."""
        return self.seconds - self.divided + self.divided / workers


def worked_out(step: Step, measured: Measured, size: Size) -> WorkedOut:
    """Return what a step takes at a size."""
    line = seconds_line(measured, step.part, step.seconds)
    amount = AMOUNTS[step.seconds](size)
    seconds, at_most = line.at(amount), line.at_most(amount)
    divided = seconds if step.divides else 0.0
    if step.forgotten is not None:
        costs, (people, anchors) = batch_costs(measured, size), step.forgotten
        divided = costs.searching(people)
        seconds = at_most = costs.erasing(people, anchors) + divided
    return WorkedOut(
        seconds=seconds,
        seconds_at_most=at_most if (line.exponent or 0) > GROWS else seconds,
        exponent=line.exponent,
        memory=memory_line(measured, step.memory_of or step.part, step.memory).at(AMOUNTS[step.memory](size)),
        traffic=step.traffic(Volumes.of(measured, size), size),
        divided=divided,
    )


def steps_table(measured: Measured, workers: int) -> tuple[list[str], list[list[str]]]:
    """Return the table of steps: what was measured, and what follows."""
    header = ["step", "grows with", "measured", "exponent", "one core", "memory", "network"]
    header += [f"{workers} workers", "bound by"]
    rows = []
    for step in STEPS:
        found, largest = worked_out(step, measured, TARGET), largest_of(measured, step.part)
        facts = measured[step.part][largest]
        time = _time(found.seconds)
        if found.seconds_at_most > GROWS * found.seconds:
            time += f" to {_time(found.seconds_at_most)}"
        on_network = found.traffic / NETWORK >= found.computing(workers)
        note = " (preliminary)" if is_preliminary(measured, step.part) else ""
        rows.append(
            [
                step.name,
                step.seconds,
                f"{largest}: {_time(beyond_start(facts))}, {facts['memory_gb']:.1f} GB{note}",
                "" if found.exponent is None else f"{found.exponent:.2f}",
                time,
                _gigabytes(found.memory),
                _gigabytes(found.traffic),
                _time(found.on(workers)),
                "network" if on_network else "processor",
            ]
        )
    return header, rows


def breaks(measured: Measured, memory: float) -> list[tuple[str, float]]:
    """Return what breaks and at how many people with 100 rows each, the first one first."""

    def memory_of(part: str, amount: str) -> Callable[[float], bool]:
        line = memory_line(measured, part, amount)
        return lambda people: line.at(AMOUNTS[amount](_sized(people))) > memory

    def takes(step: Step, limit: float) -> Callable[[float], bool]:
        return lambda people: worked_out(step, measured, _sized(people)).seconds > limit

    def a_day_of_requests(people: float) -> bool:
        costs, count = batch_costs(measured, _sized(people)), max(1, round(people * REQUESTS_OF_A_DAY))
        return costs.erasing(count, True) + costs.searching(count) > DAY

    by_part = {step.part: step for step in STEPS}
    processes = {
        "learning with EASE": "learn-ease",
        "forgetting one person with EASE": "forget-one-ease",
        "learning with ALS, or training its anchors again,": "learn-als",
        "a server whose people were all asked for": "serve-als",
    }
    limits = {f"{name} needs {memory:g} GB in one process": memory_of(part, "rows") for name, part in processes.items()}
    limits |= {
        "learning with ALS takes one core a day": takes(by_part["learn-als"], DAY),
        "learning with EASE takes one core a week": takes(by_part["learn-ease"], 7 * DAY),
        "forgetting one person with EASE takes one core a day": takes(by_part["forget-one-ease"], DAY),
        "forgetting an anchor with ALS takes one core an hour": takes(by_part["forget-anchor-als"], HOUR),
        "searching all files takes one core an hour": takes(by_part["scan-als"], HOUR),
        "a day's requests, with ALS, take one core a day": a_day_of_requests,
        "reading all files over the network takes an hour": lambda people: (
            Volumes.of(measured, _sized(people)).als / NETWORK > HOUR
        ),
        f"buckets of single slots have more than {PEOPLE_IN_A_LARGE_BUCKET:,} people": lambda people: (
            people > SLOTS * PEOPLE_IN_A_LARGE_BUCKET
        ),
    }
    found = [(name, smallest_that(too_much)) for name, too_much in limits.items()]
    return sorted([(name, people) for name, people in found if people is not None], key=lambda one: one[1])


def _sized(people: float) -> Size:
    return Size(int(people), TARGET.items, int(people) * ROWS_OF_A_PERSON)


def _time(seconds: float) -> str:
    """Return a duration as roughly as it is known."""
    return duration(seconds) if seconds < 600 else f"{seconds / HOUR:,.1f} h" if seconds < 72 * HOUR else _days(seconds)


def _days(seconds: float) -> str:
    return f"{seconds / DAY:,.0f} days"


def _gigabytes(amount: float) -> str:
    return f"{amount:,.2f} GB" if amount < 1 else f"{amount:,.0f} GB" if amount < 1_000 else f"{amount / 1e3:,.1f} TB"


def people_in_words(people: float) -> str:
    """Return a number of people as roughly as it is known.

    >>> [people_in_words(people) for people in (123_456, 8_234_567, 123_456_789, 4.4e9)]
    ['0.1 M', '8.2 M', '120 M', '4,400 M']
    """
    millions = people / 1e6
    return f"{millions:.1f} M" if millions < 10 else f"{float(f'{millions:.2g}'):,.0f} M"


def report(measured: Measured, workers: int, memory: float) -> tuple[str, dict[str, Any]]:
    """Return both tables as Markdown, and what they say as JSON."""
    header, rows = steps_table(measured, workers)
    first = breaks(measured, memory)
    steps = {step.part: worked_out(step, measured, TARGET).__dict__ for step in STEPS}
    text = markdown_table(header, rows)
    text += "\n" + markdown_table(
        ["what breaks, in this order", "at"], [[name, people_in_words(people)] for name, people in first]
    )
    facts: dict[str, Any] = {"people": TARGET.users, "rows": TARGET.interactions, "items": TARGET.items}
    facts |= {"workers": workers, "network_gb_per_second": NETWORK, "memory_gb": memory, "steps": steps}
    facts |= {"preliminary": [step.part for step in STEPS if is_preliminary(measured, step.part)]}
    return text, {**facts, "batch": batch_costs(measured).__dict__, "breaks_at_people": dict(first)}


def main() -> None:
    options = _options()
    text, facts = report(measured_in(options.measured), options.workers, options.memory)
    print(text)
    if not options.dry:
        (RESULTS / "extrapolation.md").write_text(text)
        print(f"written to {save('extrapolation', facts)}")


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--memory", type=float, default=256, help="of one machine, in GB")
    parser.add_argument("--measured", type=Path, default=KEPT, help="where the results of scale.py are")
    parser.add_argument("--dry", action="store_true", help="write no file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
