"""A year of erasure requests at a hundred million people, simulated: queue, deadlines and machine hours by window.

    scripts/bench year_of_requests [--cores 1 16] [--seeds 5]

1 in 1,000 people asks in a year, at random and in bursts. Windows are an hour, a day and a week, worked off by one
worker: by the service's rule, which lets a request join an earlier batch once it is a day old or has waited half of its
time, and by one that lets all join that wait. What a batch takes follows from results/scale/ (scale_growth.py); crashes
and outages are declared (requests_simulation.py). Each figure is the mean over years that differ by their seed, with
the lowest and the highest.

The tables are written to results/year_of_requests.md, the picture to docs/pictures/year-of-requests.png. The second
table has machines that are many times slower, to see when the month is missed.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from erasable.plots import one_legend, panels
from erasable.wording import percentage
from reporting import RESULTS, documented_parser, markdown_table, save
from requests_simulation import HOURS_OF_A_YEAR, Arrivals, Failures, Outcome, Rule, a_year
from scale import KEPT
from scale_growth import TARGET, BatchCosts, batch_costs, is_preliminary, measured_in

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "year-of-requests.png"
WINDOWS = {"an hour": 1.0, "a day": 24.0, "a week": 168.0}
JOINING = {"the service's": False, "all join": True}
DEADLINE, SHORTER = 30 * 24.0, 72.0
"""The legal month, and what one may want to promise, in hours."""
_LOOKS = {"an hour": "#d55e00", "a day": "#0072b2", "a week": "#009e73"}
SLOWER = (1, 10, 30, 100)
"""How many times slower than measured a machine may be, for the second table."""
PARTS_OF_COSTS = ("forget-one-als", "forget-1000-als", "forget-anchor-als")

Spread = tuple[float, float, float]
"""The mean, the lowest and the highest."""


def figures(outcome: Outcome, window: float, cores: int) -> dict[str, float]:
    """Return what is said of a year."""
    hours = np.arange(0, HOURS_OF_A_YEAR)
    queue, waited = outcome.queue_at(hours), outcome.waited
    return {
        "requests": len(waited),
        "queue_mean": float(queue.mean()),
        "queue_p95": float(np.percentile(queue, 95)),
        "queue_max": int(outcome.queue_at(outcome.requests.received).max()),
        "waited_median_hours": float(np.median(waited)),
        "waited_p99_hours": float(np.percentile(waited, 99)),
        "waited_max_hours": float(waited.max()),
        "within_month": float((waited <= DEADLINE).mean()),
        "within_72_hours": float((waited <= SHORTER).mean()),
        "within_window": float((waited <= window).mean()),
        "batches": len(outcome.sizes),
        "largest_batch": int(outcome.sizes.max()),
        "core_hours": outcome.working * cores,
        "share_used": outcome.working / HOURS_OF_A_YEAR,
        "crashes": outcome.crashes,
    }


def over_years(years: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    """Return each figure's mean, lowest and highest.

    >>> over_years([{"batches": 1.0}, {"batches": 4.0}])
    {'batches': (2.5, 1.0, 4.0)}
    """
    columns = {name: [year[name] for year in years] for name in years[0]}
    return {name: (sum(values) / len(values), min(values), max(values)) for name, values in columns.items()}


def table(found: Mapping[tuple[int, str, str], Mapping[str, Spread]]) -> str:
    """Return the figures as Markdown."""
    header = ["cores, window, who joins", "queue: mean, 95 %, most", "waiting: median, 99 %, longest"]
    header += ["in a month", "in 72 h", "in the window", "batches", "core hours", "of the time"]
    rows = []
    for (cores, window, joining), one in found.items():
        queue = ", ".join(f"{one[name][0]:,.0f}" for name in ("queue_mean", "queue_p95", "queue_max"))
        waited = (_hours(one[f"waited_{name}_hours"][0]) for name in ("median", "p99", "max"))
        shares = (_share(one[name]) for name in ("within_month", "within_72_hours", "within_window"))
        spread = [_spread(one[name]) for name in ("batches", "core_hours")]
        used = percentage(one["share_used"][0])
        rows.append([f"{cores}, {window}, {joining}", queue, ", ".join(waited), *shares, *spread, used])
    return markdown_table(header, rows)


def on_slower_machines(costs: BatchCosts, seeds: int) -> dict[int, dict[str, Spread]]:
    """Return the share that is certified within a month on one core, by how many times slower it is and by window."""
    found: dict[int, dict[str, Spread]] = {}
    for times in SLOWER:
        for window, hours in WINDOWS.items():
            years = [a_year(seed, Rule(hours), costs.slower(times), 1, Arrivals(), Failures()) for seed in range(seeds)]
            shares = over_years([figures(one, hours, 1) for one in years])
            found.setdefault(times, {})[window] = shares["within_month"]
    return found


def table_of_slower(found: Mapping[int, Mapping[str, Spread]]) -> str:
    """Return the shares as Markdown."""
    header = ["one core, in a month", *(f"window of {window}" for window in WINDOWS)]
    rows = [
        ["as measured" if times == 1 else f"{times} times slower", *(_share(one[window]) for window in WINDOWS)]
        for times, one in found.items()
    ]
    return markdown_table(header, rows)


def _hours(hours: float) -> str:
    return f"{hours:.1f} h" if hours < 72 else f"{hours / 24:.1f} d"


def _share(spread: Spread) -> str:
    """Return a share with its lowest, never rounded up to all."""
    mean, lowest, _ = (f"{np.floor(1000 * one) / 10:g} %" for one in spread)
    return mean if mean == lowest else f"{mean} (worst {lowest})"


def _spread(spread: Spread) -> str:
    return "{:,.0f} ({:,.0f}–{:,.0f})".format(*spread)


def draw(years: Mapping[tuple[int, str, str], Outcome], file: Path) -> Path:
    """Draw the longest queue of each day: a panel for each number of cores and rule, a line for each window."""
    kinds = sorted({(cores, joining) for cores, _, joining in years}, key=lambda kind: (kind[0], kind[1] == "all join"))
    names = list(dict.fromkeys(cores for cores, _ in kinds))
    figure, axes = panels(len(names), len(kinds) // len(names), sharex=True, sharey=True)
    figure.set_size_inches(9.4, 2.7 * len(names))
    hours = np.arange(0, HOURS_OF_A_YEAR)
    days = np.arange(len(hours) // 24)
    for axis, (cores, joining) in zip(axes.flat, kinds, strict=True):
        for window, colour in reversed(_LOOKS.items()):  # the smallest queue on top
            queue = years[cores, window, joining].queue_at(hours).reshape(-1, 24).max(axis=1)
            axis.plot(days, queue, color=colour, label=f"window of {window}", linewidth=1.1)
        rule = "the service's rule" if joining != "all join" else "all that wait join"
        axis.set_title(f"{cores} core{'s' if cores > 1 else ''}, {rule}", fontsize=9)
        axis.set_yscale("symlog", linthresh=10)
        axis.set_ylim(0, None)
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.set_xlim(0, 365)
    for axis in axes[-1]:
        axis.set_xlabel("day of the year")
    for axis in axes[:, 0]:
        axis.set_ylabel("most open requests")
    one_legend(figure, axes)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=190)
    return file


def main() -> None:
    options = _options()
    measured = measured_in(options.measured)
    costs, arrivals, failures = batch_costs(measured), Arrivals(), Failures()
    found: dict[tuple[int, str, str], dict[str, Spread]] = {}
    drawn: dict[tuple[int, str, str], Outcome] = {}
    for key in [(cores, window, joins) for cores in options.cores for joins in JOINING for window in WINDOWS]:
        cores, window, joins = key
        rule = Rule(WINDOWS[window], JOINING[joins])
        years = [a_year(seed, rule, costs, cores, arrivals, failures) for seed in range(options.seeds)]
        found[key], drawn[key] = over_years([figures(one, rule.window, cores) for one in years]), years[0]
    slower = on_slower_machines(costs, options.seeds)
    text = f"{table(found)}\n{table_of_slower(slower)}"
    print(text)
    print(_in_words(costs))
    if options.dry:
        return
    (RESULTS / "year_of_requests.md").write_text(text)
    facts: dict[str, Any] = {"people": TARGET.users, "rows": TARGET.interactions, "seeds": options.seeds}
    facts |= {"seconds_of_one_core": asdict(costs), "arrivals": asdict(arrivals), "failures": asdict(failures)}
    facts["preliminary"] = [part for part in PARTS_OF_COSTS if is_preliminary(measured, part)]
    facts["mean_lowest_highest"] = {", ".join(map(str, key)): one for key, one in found.items()}
    facts["within_month_if_slower"] = slower
    print(f"drawn in {draw(drawn, PICTURE)}, written to {save('year_of_requests', facts)}")


def _in_words(costs: BatchCosts) -> str:
    return (
        f"one core: a batch {costs.start + costs.fixed:.1f} s, a bucket {costs.bucket:.1f} s, a person "
        f"{1000 * costs.person:.0f} ms, anchors {costs.anchors:,.0f} s, the search {costs.scan:,.0f} s"
    )


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--seeds", type=int, default=5, help="how many years are simulated of each kind")
    parser.add_argument("--measured", type=Path, default=KEPT, help="where the results of scale.py are")
    parser.add_argument("--dry", action="store_true", help="write no file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
