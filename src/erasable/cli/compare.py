"""`erasable compare`."""

import json
from pathlib import Path
from typing import Annotated, Any

import pyarrow.csv as pc
import typer

from erasable.chain.settings import OwnSettings
from erasable.cli.options import (
    COLUMN_OPTIONS,
    BadRows,
    Json,
    Quiet,
    Threads,
    columns_from,
    parameters_of,
    settings_options,
    with_default,
    work_with,
)
from erasable.cli.output import print_json, print_line, print_table
from erasable.errors import WrongUse, of_command
from erasable.operations.compare import USUAL_HOLDOUT, USUAL_MODELS, ModelComparison, compare
from erasable.operations.prepare import Inputs
from erasable.plots import draw_comparison, figure_file
from erasable.wording import counted, duration, percentage

NAME = "compare"
_NOT_SHARED = ("rows", "risk_threshold", "features", "chosen_on")
_OPTIONS = with_default(
    {name: one for name, one in parameters_of(OwnSettings).items() if name not in _NOT_SHARED}, "holdout", USUAL_HOLDOUT
)


@settings_options(_OPTIONS, {name: one for name, one in COLUMN_OPTIONS.items() if name != "risk_column"})
def command(
    data: Annotated[str, typer.Argument(metavar="DATA", help="The interactions, as for learn.", show_default=False)],
    models: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME:SETTING=VALUE,…",
            help="The models, each with its own settings if need be: als:factors=128:anchors=0.3,ease",
        ),
    ] = ",".join(USUAL_MODELS),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Measure fewer people, and train models that learn by steps for fewer epochs; says so."
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table as .csv or .json.")] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw quality against the cost of forgetting: .png, .svg or .pdf."),
    ] = None,
    on_bad_row: BadRows = "refuse",
    threads: Threads = None,
    json_output: Json = False,
    quiet: Quiet = False,
    settings: dict[str, Any] | None = None,
    columns: dict[str, str] | None = None,
) -> None:
    """Compare models on your data, forgetting included.

    DATA is read once, and nothing of it is stored. A tenth of the interactions is held out unless --holdout says
    otherwise.
    """
    if out is not None and out.suffix.lower() not in (".csv", ".json"):
        raise WrongUse(f"{out}: the table is written as .csv or .json: name it so")
    if out is not None and (not out.absolute().parent.is_dir() or out.is_dir()):
        raise WrongUse(f"{out}: can't be written: name a file in a folder that is there")
    if picture is not None:
        figure_file(picture)
    work, inputs = work_with(threads, quiet or json_output), Inputs(columns_from(columns or {}), on_bad_row=on_bad_row)
    named = [one.strip() for one in models.split(",") if one.strip()]
    found = compare(data, named, settings or {}, inputs, work, quick)
    _tell(found, json_output)
    _write(found, out, picture)


def _tell(found: ModelComparison, json_output: bool) -> None:
    notes = [of_command(note) for note in found.notes]
    if json_output:
        print_json({**found.as_json(), "notes": notes})
        return
    facts = found.facts
    print_line(
        f"{counted(facts['users'], 'user')}, {counted(facts['items'], 'item')}, "
        f"{counted(facts['interactions'], 'interaction')}, of which {facts['held_out']:,} are held out"
    )
    headings = ("model", "NDCG@10", "HR@10", "recall@10", "learn", "forget one: cost", "time", "memory")
    rows = found.table.to_pylist()
    print_table(headings, [_cells(row) for row in rows if row["failed"] is None])
    for note in notes:
        print_line(note)


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    quality = [row[name] for name in ("ndcg@10", "hr@10", "recall@10")]
    seconds = [duration(row[f"{name}_seconds"]) for name in ("learn", "forget")]
    memory = f"{round(row['memory_bytes'] / 1e6):,} MB"
    return row["model"], *quality, seconds[0], percentage(row["forget_cost"]), seconds[1], memory


def _write(found: ModelComparison, out: Path | None, picture: Path | None) -> None:
    try:
        if out is not None and out.suffix.lower() == ".csv":
            pc.write_csv(found.table, out)
        elif out is not None:
            out.write_text(json.dumps(found.as_json(), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        if picture is not None:
            draw_comparison(found, picture)
    except OSError as error:
        raise WrongUse(f"{out or picture}: can't be written ({error.strerror}): name another file") from None
