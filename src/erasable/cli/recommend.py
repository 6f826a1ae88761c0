"""`erasable recommend`."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import typer

from erasable.cli.options import (
    EXECUTOR,
    Folder,
    Json,
    OnlyTheAnswer,
    Threads,
    Users,
    UsersFile,
    cluster_from,
    read_requests,
    settings_options,
    work_with,
)
from erasable.cli.output import TerminalReporter, print_json, print_line, print_table
from erasable.cli.selecting import SELECTING, TellingDoubts, ids_in, selection_from
from erasable.errors import WrongUse
from erasable.operations.offers import Shortage
from erasable.operations.recommend import (
    RECOMMENDATIONS,
    Recommendation,
    Unknown,
    UserRecommendations,
    recommend,
    recommend_for_history,
    recommend_to_all,
)
from erasable.operations.scores import UserScores, score, score_for_history
from erasable.operations.storage import DiskStorage
from erasable.operations.work import Work
from erasable.wording import counted, listed

NAME = "recommend"
_WRITERS = {".csv": pacsv.CSVWriter, ".parquet": pq.ParquetWriter, ".arrow": pa.ipc.new_file}
_ENDINGS = (*_WRITERS, ".json")
_SHORTAGES: dict[Shortage, str] = {
    "has all": "has every item that anyone has: there is nothing to recommend",
    "none may be": "gets nothing: none of the items that may be recommended is left",
    "no score": "gets nothing: the model has no score for the items that are left, and nobody it learned from has them",
}


@settings_options(SELECTING, EXECUTOR)
def command(
    folder: Folder,
    users: Users = None,
    users_file: UsersFile = None,
    everyone: Annotated[bool, typer.Option("--all", help="Recommend to every user.")] = False,
    history: Annotated[
        list[str] | None,
        typer.Option(
            metavar="I,I",
            help="Recommend to someone without an id who has these items, separated by commas; may be repeated. Each "
            "counts as rated highest: ratings can be given to the library and the service.",
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=100_000, help="How many items for each user.")] = 10,
    fallback: Annotated[
        Literal["popular"] | None, typer.Option(help="What an unknown user gets, instead of being refused.")
    ] = None,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Leave out users that are not held, instead of being refused.")
    ] = False,
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            help="Name the user's own items that add most to each score, with their weights (ease and item-knn).",
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a .csv, .parquet, .arrow or .json file instead.")
    ] = None,
    threads: Threads = None,
    json_output: Json = False,
    quiet: OnlyTheAnswer = False,
    selecting: dict[str, Any] | None = None,
    executor: dict[str, Any] | None = None,
) -> None:
    """Recommend items to users."""
    named = "--user" if users else "--users-file" if users_file else None
    _refuse_unclear(named, "--all" if everyone else None, "--history" if history is not None else None)
    if ignore_unknown and fallback:
        raise WrongUse("--ignore-unknown leaves out whom --fallback gives popular items: leave out one of them")
    if out is not None:
        _refuse_unfit(out, folder, why)
    in_parts = everyone and out is not None and out.suffix.lower() != ".json" and not json_output
    if cluster_from(executor or {}) and not in_parts:
        raise WrongUse(
            "--executor ray is for everyone: give --all, and --out a .csv, .parquet or .arrow file; or leave it out"
        )
    storage, selecting = DiskStorage(folder), selecting or {}
    selection = selection_from(selecting)
    if selecting.get("scores"):
        _refuse_with_scores(selecting, everyone, why, out is not None)
        wanted = _user_ids(users, users_file)
        scored = _scores(storage, wanted, history, selecting, ignore_unknown)
        _tell_scores(scored, _missing(wanted, scored), json_output)
    elif in_parts and out is not None:
        work = _work(threads, quiet, executor=executor)
        parts = recommend_to_all(storage, k, work, selection=selection)
        _tell_written(*_write_all(out, parts), out)
    else:
        work = _work(threads, quiet, json_output)
        wanted = _user_ids(users, users_file)
        if history is not None:
            found = [recommend_for_history(storage, ids_in(history), k, why, selection, work)]
        else:
            unknown: Unknown = "skip" if ignore_unknown else fallback or "raise"
            found = recommend(storage, None if everyone else wanted, k, unknown, work, why, selection)
        _hand_out(found, _missing(wanted, found), out, why, json_output)


def _work(threads: int | None, quiet: bool, json_output: bool = False, executor: dict[str, Any] | None = None) -> Work:
    reporter = TerminalReporter(quiet) if quiet else TellingDoubts(json_output)
    return replace(work_with(threads, quiet, executor), reporter=reporter)


def _missing(wanted: Sequence[str], found: Sequence[UserRecommendations | UserScores]) -> list[str]:
    """Return who was asked for and left out."""
    answered = {one.user_id for one in found}
    return [user for user in wanted if user not in answered]


def _tell_missing(unknown: Sequence[str]) -> None:
    if unknown:
        print_line(f"left out, since nothing is held about them or they have asked to be erased: {', '.join(unknown)}")


def _unknown_as_json(unknown: Sequence[str]) -> dict[str, Any]:
    return {"unknown": [*unknown]} if unknown else {}


def _hand_out(
    found: list[UserRecommendations], unknown: Sequence[str], out: Path | None, why: bool, json_output: bool
) -> None:
    """Write recommendations into a file if one is named, and print them or how many were written."""
    if out is not None:
        _write(out, found, why)
    if json_output:
        print_json(_all_as_json(found, why) | _unknown_as_json(unknown) | ({} if out is None else {"out": str(out)}))
        return
    if out is not None:
        _tell_written(sum(map(bool, found)), len(found), out)
    else:
        _tell(found, why)
    _tell_missing(unknown)


def _tell_written(with_items: int, users: int, out: Path) -> None:
    few = f"{with_items:,} of " if with_items < users else ""
    print_line(f"wrote recommendations for {few}{counted(users, 'user')} to {out}")
    if few:
        print_line(f"for {counted(users - with_items, 'user')} nothing is left to recommend")


def _refuse_unclear(*ways: str | None) -> None:
    """Refuse a call that does not say for whom, or says it in several ways."""
    given = [way for way in ways if way]
    if not given:
        raise WrongUse("say for whom: give --user U (may be repeated), --users-file F, --all or --history I,I")
    if len(given) > 1:
        raise WrongUse(f"{listed(given)} each say for whom: give only one of them")


def _refuse_with_scores(selecting: dict[str, Any], *others: bool) -> None:
    """Refuse what makes no sense together with --scores."""
    if any(others) or any(selecting.get(name) for name in ("available", "exclude", "exclude_file", "where")):
        raise WrongUse(
            "--scores prints the scores of --items for named users: leave out --all, --why and --out, and --available, "
            "--exclude, --exclude-file and --where"
        )


def _refuse_unfit(out: Path, folder: Path, why: bool) -> None:
    """Refuse a file of another kind, one that has no room for --why, and one in the workspace."""
    if out.suffix.lower() not in _ENDINGS:
        raise WrongUse(f"{out}: the kind of file is not clear: give --out a name that ends in {', '.join(_ENDINGS)}")
    if why and out.suffix.lower() != ".json":
        raise WrongUse(f"{out}: such a file has no room for --why: give --out a name that ends in .json")
    if out.resolve().is_relative_to(folder.resolve()):
        raise WrongUse(f"{out} lies in the workspace, where it would outlive an erasure: give --out a file elsewhere")


def _user_ids(users: list[str] | None, users_file: Path | None) -> list[str]:
    from_file = [request.user for request in read_requests(users_file)] if users_file else []
    return list(dict.fromkeys([*(users or []), *from_file]))


def _scores(
    storage: DiskStorage,
    users: list[str],
    history: list[str] | None,
    selecting: dict[str, Any],
    ignore_unknown: bool,
) -> list[UserScores]:
    items = ids_in(selecting.get("items") or [])
    if history is not None:
        return [score_for_history(storage, ids_in(history), items)]
    return score(storage, users, items, ignore_unknown)


def _tell_scores(found: list[UserScores], unknown: Sequence[str], json_output: bool) -> None:
    if json_output:
        scores = [
            {"user_id": one.user_id, "items": [{"item_id": item, "score": score} for item, score in one.scores]}
            for one in found
        ]
        left_out = [item for one in found for item in one.left_out]
        print_json({"scores": scores} | ({"left_out": left_out} if left_out else {}) | _unknown_as_json(unknown))
        return
    rows = [(one.user_id, item, "" if score is None else score) for one in found for item, score in one.scores]
    print_table(["user", "item", "score"], rows)
    if any(score == "" for _, _, score in rows):
        print_line("no score: nobody has the item, it is hidden, or the model learned nothing from the user's items")
    _tell_missing(unknown)


def _tell(found: list[UserRecommendations], why: bool) -> None:
    every = [r for one in found for r in one]
    filled_up = any(r.popular for r in every)
    columns = {"user": [r.user_id for r in every], "rank": [r.rank for r in every]}
    columns |= {"item": [r.item_id for r in every], "score": [r.score for r in every]}
    columns |= {"popular": ["yes" if r.popular else "" for r in every]} if filled_up else {}
    columns |= {"because of": [_because(r) for r in every]} if why else {}
    print_table(list(columns), list(zip(*columns.values(), strict=True)))
    if filled_up:
        print_line("popular: the model gives no score for this item; the score shown is how many people have it")
    if why:
        print_line("because of: the user's own items that add most to the score, and how much each adds")
    for one in found:
        if one.left_out:
            print_line(f"not in the catalogue, and left out of the history: {', '.join(one.left_out)}")
        if one.shortage is not None:
            who = f"user {one.user_id}" if one.user_id else "someone with this history"
            print_line(f"{who} {_SHORTAGES[one.shortage]}")


def _because(recommended: Recommendation) -> str:
    return ", ".join(f"{reason.item_id} ({reason.weight:.4f})" for reason in recommended.because)


def _all_as_json(found: list[UserRecommendations], why: bool) -> dict[str, Any]:
    left_out = [item for one in found for item in one.left_out]
    return {"recommendations": [_as_json(one, why) for one in found]} | ({"left_out": left_out} if left_out else {})


def _as_json(one: UserRecommendations, why: bool) -> dict[str, Any]:
    items = [
        {"item_id": r.item_id, "score": r.score, "rank": r.rank, "popular": r.popular}
        | ({"because": [reason._asdict() for reason in r.because]} if why else {})
        for r in one
    ]
    return {"user_id": one.user_id, "items": items}


def _write(path: Path, found: list[UserRecommendations], why: bool) -> None:
    if path.suffix.lower() != ".json":
        _write_all(path, iter([found]))
        return
    with _writing(path):
        path.write_text(json.dumps(_all_as_json(found, why), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _write_all(path: Path, parts: Iterator[list[UserRecommendations]]) -> tuple[int, int]:
    """Write recommendations part by part, and return how many users have some, and how many users there are."""
    first, with_items, users = next(parts, []), 0, 0  # so that nothing is written if recommending is refused
    with _writing(path), _WRITERS[path.suffix.lower()](str(path), RECOMMENDATIONS) as writer:
        for found in chain([first], parts):
            with_items, users = with_items + sum(map(bool, found)), users + len(found)
            writer.write_table(pa.Table.from_pylist([vars(r) for one in found for r in one], schema=RECOMMENDATIONS))
    return with_items, users


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Make the file, and say so if it can't be written."""
    try:
        if not path.exists():  # it says what people like: only its owner may read a new one
            path.touch(0o600)
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise WrongUse(f"{path}: can't be written ({reason}): give --out another file") from None
