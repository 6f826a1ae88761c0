"""`erasable recommend`."""

import csv
import json
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import typer

from erasable.cli.options import Folder, Json, OnlyTheAnswer, Threads, work_with
from erasable.cli.output import counted, print_json, print_line, print_table
from erasable.cli.requests import Users, UsersFile, read_requests
from erasable.errors import WrongUse
from erasable.operations import RECOMMENDATIONS, DiskHome, recommend, recommend_for_history
from erasable.operations.recommend import UserRecommendations

NAME = "recommend"
_ENDINGS = (".csv", ".json", ".parquet")


def command(
    folder: Folder,
    users: Users = None,
    users_file: UsersFile = None,
    everyone: Annotated[bool, typer.Option("--all", help="Recommend to every user.")] = False,
    history: Annotated[
        list[str] | None,
        typer.Option(
            metavar="I,I",
            help="Recommend to someone without an id who has these items, separated by commas; may be repeated.",
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=100_000, help="How many items for each user.")] = 10,
    fallback: Annotated[
        Literal["popular"] | None, typer.Option(help="What an unknown user gets, instead of being refused.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a .csv, .json or .parquet file instead.")
    ] = None,
    threads: Threads = None,
    json_output: Json = False,
    quiet: OnlyTheAnswer = False,
) -> None:
    """Recommend items to users."""
    if [everyone, bool(users or users_file), history is not None].count(True) != 1:
        raise WrongUse("say for whom: give --user U (may be repeated), --users-file F, --all or --history I,I")
    if out is not None and out.suffix.lower() not in _ENDINGS:
        raise WrongUse(f"{out}: of what kind is it to be? Give --out a name that ends in {', '.join(_ENDINGS)}")
    if out is not None and out.resolve().is_relative_to(folder.resolve()):
        raise WrongUse(f"{out} lies in the workspace, where it would outlive an erasure: give --out a file elsewhere")
    home = DiskHome(folder)
    if history is not None:
        found = [recommend_for_history(home, _items(history), k)]
    else:
        wanted = None if everyone else _user_ids(users, users_file)
        found = recommend(home, wanted, k, fallback or "raise", work_with(threads, quiet or json_output))
    if out is not None:
        _write(out, found)
    if json_output:
        print_json(_all_as_json(found) | _written(out))
    elif out is not None:
        print_line(f"wrote recommendations for {counted(len(found), 'user')} to {out}")
    else:
        _tell(found)


def _user_ids(users: list[str] | None, users_file: Path | None) -> list[str]:
    from_file = [request.user for request in read_requests(users_file)] if users_file else []
    return list(dict.fromkeys([*(users or []), *from_file]))


def _items(history: list[str]) -> list[str]:
    """Return the items of a history; one whose id has a comma stands between quotation marks."""
    return list(dict.fromkeys(item for row in csv.reader(history) for item in row if item))


def _tell(found: list[UserRecommendations]) -> None:
    filled_up = any(r.popular for one in found for r in one)
    headings = ("user", "rank", "item", "score", *(("popular",) if filled_up else ()))
    rows = [(r.user_id, r.rank, r.item_id, r.score, "yes" if r.popular else "") for one in found for r in one]
    print_table(headings, rows)
    if filled_up:
        print_line("popular: the model says nothing about this item; the score is how many people have it")
    for one in found:
        if one.left_out:
            print_line(f"not in the catalogue, and left out of the history: {', '.join(one.left_out)}")
        elif not one:
            print_line(f"user {one.user_id} has every item that anyone has: there is nothing to recommend")


def _all_as_json(found: list[UserRecommendations]) -> dict[str, Any]:
    left_out = [item for one in found for item in one.left_out]
    return {"recommendations": [_as_json(one) for one in found]} | ({"left_out": left_out} if left_out else {})


def _as_json(one: UserRecommendations) -> dict[str, Any]:
    items = [{"item_id": r.item_id, "score": r.score, "rank": r.rank, "popular": r.popular} for r in one]
    return {"user_id": one.user_id, "items": items}


def _written(out: Path | None) -> dict[str, str]:
    return {} if out is None else {"out": str(out)}


def _write(path: Path, found: list[UserRecommendations]) -> None:
    try:
        if not path.exists():  # it says what people like, so a new one is for its owner alone
            path.touch(0o600)
        if path.suffix.lower() == ".json":
            path.write_text(json.dumps(_all_as_json(found), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
            return
        table = pa.Table.from_pylist([vars(r) for one in found for r in one], schema=RECOMMENDATIONS)
        if path.suffix.lower() == ".parquet":
            pq.write_table(table, path)
        else:
            pacsv.write_csv(table, path)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise WrongUse(f"{path}: can't be written ({reason}): give --out another file") from None
