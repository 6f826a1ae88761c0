"""Whether the time that an answer takes tells who has asked to be erased.

With an application's token, 1,000 people who were never known, 1,000 who are suppressed and 1,000 who were erased are
asked for over HTTP on one connection, in random order; each id several times, and the quickest answer counts, as it
would for someone who wants to find out. An AUC of one half says that the times of two kinds can't be told apart.
"""

import argparse
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from scipy.stats import rankdata

from erasable.chain import Config
from erasable.operations import DiskStorage, forget, learn
from erasable.requests import Request
from erasable.service._service import Service
from erasable.service.settings import ServiceSettings
from kit import erasure_service, service_process, small_shop
from reporting import print_table, save, warn_if_busy

BAR = 0.05
_SETTINGS = ServiceSettings(batch_window=28, daily_share=1)
_KINDS = ("never known", "suppressed", "erased")


def run(options: argparse.Namespace) -> None:
    """Ask for everyone, and compare."""
    warn_if_busy()
    with tempfile.TemporaryDirectory() as folder:
        shop = Path(folder) / "shop"
        learn(small_shop.table(4 * options.people, 200), shop, Config(model="als"))
        kinds = _people(shop, options)
        headers = {"Authorization": f"Bearer {erasure_service.new_token(shop, 'application')}"}
        with (
            service_process.running(shop, _SETTINGS) as service,
            httpx2.Client(base_url=service.url, headers=headers) as client,
        ):
            seconds, answers = _asked(client, kinds, options)
    areas = {
        f"{one} / {other}": _area(seconds[one], seconds[other]) for one, other in itertools.combinations(_KINDS, 2)
    }
    _report(areas, seconds)
    facts = {
        "people_of_each_kind": options.people,
        "repeats": options.repeats,
        "bar": BAR,
        "different_answers": answers,
    }
    medians = {kind: round(1e6 * float(np.median(found)), 1) for kind, found in seconds.items()}
    print(f"written to {save('service-timing', {**facts, 'auc': areas, 'median_microseconds': medians})}")
    if answers > 1 or any(abs(area - 0.5) > BAR for area in areas.values()):
        sys.exit("broken: answers or their times tell who has asked to be erased")


def _people(shop: Path, options: argparse.Namespace) -> dict[str, list[str]]:
    """Have some people erased and some suppressed, and return the ids of each kind; they are all of one form."""
    everyone = erasure_service.people_in(shop)
    random.Random(options.seed).shuffle(everyone)
    erased, suppressed = everyone[: options.people], everyone[options.people : 2 * options.people]
    forget(DiskStorage(shop), [Request(user) for user in erased])
    served = Service.open(shop, _SETTINGS)
    with closing(served.database):
        for user in suppressed:
            served.reception.submit(Request(user), "application 1")
    width = len(everyone[0]) - 1
    unknown = [f"u{number:0{width}d}" for number in range(10**width - options.people, 10**width)]
    return dict(zip(_KINDS, (unknown, suppressed, erased), strict=True))


def _asked(
    client: httpx2.Client, kinds: Mapping[str, Sequence[str]], options: argparse.Namespace
) -> tuple[dict[str, list[float]], int]:
    """Return the quickest answer about each person by kind, and how many different answers there were."""
    people = [(kind, user) for kind, users in kinds.items() for user in users]
    quickest = dict.fromkeys(people, float("inf"))
    answers: set[tuple[Any, ...]] = set()
    generator = random.Random(options.seed)
    for _ in range(options.repeats):
        generator.shuffle(people)
        for person in people:
            began = time.perf_counter()
            answer = client.get(f"/v1/recommendations/{person[1]}")
            quickest[person] = min(quickest[person], time.perf_counter() - began)
            answers.add((answer.status_code, answer.content))
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    for (kind, _), seconds in quickest.items():
        found[kind].append(seconds)
    return found, len(answers)


def _area(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the chance that an answer of one kind takes longer than one of another, ties counted half."""
    ranks = rankdata([*one, *other])[: len(one)]
    return float((ranks.sum() - len(one) * (len(one) + 1) / 2) / (len(one) * len(other)))


def _report(areas: Mapping[str, float], seconds: Mapping[str, Sequence[float]]) -> None:
    rows = [[pair, f"{area:.3f}", "reached" if abs(area - 0.5) <= BAR else "MISSED"] for pair, area in areas.items()]
    print_table(("pair", "AUC", f"|AUC - .5| <= {BAR}"), rows)
    print_table(("kind", "median, µs"), [[kind, f"{1e6 * np.median(found):.1f}"] for kind, found in seconds.items()])
