"""Press Ctrl-C at random moments: 200 times in learn and 50 times in each other long command.

Each process must end within two seconds, with one line, and leave the workspace as before or as after; where it is as
before, the same command is run again and must give the bytes of an undisturbed one. Every other time Ctrl-C goes to the
whole group of processes, as from a terminal, and every eighth time nothing was compiled before. The moments are drawn
over the time that the command takes undisturbed, at most 10 seconds. Each outcome is kept under results/interrupts/ as
soon as it is there, so that a run that was stopped goes on from there.
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # the kit that the tests share

from kit.interrupting import IN_TIME, MODELS, Service, Trial
from reporting import RESULTS, documented_parser, print_table, save

_KEPT = RESULTS / "interrupts"
_LATEST = 10.0


def main() -> None:
    options = _options()
    _KEPT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        trials = Service(Path(folder)).trials()
        place = Path(folder) / "place"
        rounds = options.learn // len(MODELS)
        times = {name: rounds if name.split()[-1] in MODELS else options.others for name in trials}
        # Round by round, so that a run that is stopped early has some of each.
        for number in range(max(times.values())):
            for name in (name for name in trials if number < times[name]):
                _interrupt(name, trials[name], number, place, options.seed)
            if sys.stderr.isatty():
                print(f"\rround {number + 1} of {max(times.values())}", end="", file=sys.stderr, flush=True)
    _report(times, options.seed)


def _interrupt(name: str, trial: Trial, number: int, place: Path, seed: int) -> None:
    """Interrupt a command once, unless that was done."""
    file = _file(name)
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"seconds": trial.seconds(place)}
    ends = kept.setdefault("ends", [])
    if number < len(ends):
        return
    moment = random.Random(f"{seed} {name} {number}").uniform(0, min(_LATEST, kept["seconds"]))
    end = trial.interrupt(place, moment, everyone=number % 2 == 0, fresh=number % 8 == 7)
    ends.append({"moment": round(moment, 2), "way": end.way, "seconds": round(end.seconds, 2)})
    if end.early:  # the machine is less busy than it was
        kept["seconds"] = end.lasted
    if not end.is_right:
        print(f"{name} at {moment:.2f} s: {end}", file=sys.stderr, flush=True)
    file.write_text(json.dumps(kept) + "\n")


def _report(times: dict[str, int], seed: int) -> None:
    rows, everything = [], {}
    for name, wanted in times.items():
        ends = json.loads(_file(name).read_text())["ends"][:wanted]
        ways = dict(sorted(Counter(end["way"] for end in ends).items()))
        late = sum(end["seconds"] > IN_TIME for end in ends)
        slowest = max(end["seconds"] for end in ends)
        wrong = sum(end["way"].isupper() for end in ends)
        everything[name] = {"interrupts": len(ends), "ways": ways, "late": late, "slowest": slowest, "wrong": wrong}
        rows.append([name, str(len(ends)), str(wrong), str(late), f"{slowest:.2f}"])
    print_table(("command", "interrupts", "hung or traceback", "after 2 s", "slowest"), rows)
    print("as before or as after in all cases, with the bytes of an undisturbed command after the next one")
    save("interrupts", {"seed": seed, "commands": everything})


def _file(name: str) -> Path:
    return _KEPT / f"{name.replace(' ', '-')}.json"


def _options() -> argparse.Namespace:
    parser = documented_parser(__doc__)
    parser.add_argument("--learn", type=int, default=200, help="how often learn is interrupted, all models together")
    parser.add_argument("--others", type=int, default=50, help="how often each other command is")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
