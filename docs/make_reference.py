"""Write the reference page from the commands' own help and the settings' own sentences (see scripts/reference)."""

import os
import sys

os.environ["COLUMNS"] = "100"  # the help is laid out for the terminal's width

from typer.testing import CliRunner

from erasable.chain.settings import settings_classes
from erasable.checked_settings import sentences_of
from erasable.cli.main import make_app
from erasable.data import ColumnNames
from erasable.wording import listed

app = make_app()

HEADING = """# Commands and settings

Made from the commands' own help by `scripts/reference`; change the sentences in the code, not here.

Groups are counted from 1 in what commands print and in their JSON. Files that are read back count positions from 0:
the CSV of `--groups-from`, and the manifest.

`scan` and `verify` keep exit codes 0 and 1 for their verdict; whatever keeps them from one is 2. Other commands end
with 0 (done), 1 (refused) or 2 (wrong use).

## Settings

Each is an option of `erasable learn`, a line of its `--config` file, and, but for the columns, an argument of
`erasable.Recommender`. In Python, columns are named where the table is given, `fit(table, user="who", item="what")`;
`on_bad_row="skip"` leaves out rows that can't be used ([how to use the library](../how-to/use-the-library.md)).
Models and strategies may be objects there, each with its own settings:
`Recommender(NMF(epochs=20), strategy=Laser(groups=8), seed=3)`.

A setting belongs to a model, to a strategy, or to the recommender whatever its model is. One that the chosen model and
strategy do not have is refused; no setting switches the model.

| setting | of | default | meaning |
|---|---|---|---|
| `model` | | `ease` | ease, als (closed forms), item-knn, popular, nmf or dmf (steps), sasrec or two-tower (PyTorch). |
| `strategy` | | | laser or sisa (nmf and dmf, laser if not given), or retrain (all). |
"""


def settings_table() -> str:
    """Return a row for each setting of every model and strategy; those that several share stand together."""
    owners: dict[tuple[str, str, str], list[str]] = {}
    for owner, kind in settings_classes().items():
        for name, sentence in sentences_of(kind).items():
            default = kind.model_fields[name].default
            shown = "" if default is None else f"`{default}`"
            owners.setdefault((name, shown, sentence), []).append(owner)
    rows = [
        f"| `{name}` | {listed(of)} | {default} | {meaning} |".replace("|  |", "| |")
        for (name, default, meaning), of in owners.items()
    ]
    rows += [f"| `{name}_column` | | | {sentence} |" for name, sentence in sentences_of(ColumnNames).items()]
    return "\n".join(rows) + "\n"


def command_names() -> list[str]:
    """Return every command, those below another one as two words."""
    names = [command.name for command in app.registered_commands if not command.hidden]
    for group in app.registered_groups:
        names += [group.name, *(f"{group.name} {command.name}" for command in group.typer_instance.registered_commands)]
    return names


def help_of(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, "--help"], prog_name="erasable")
    lines = [line.rstrip() for line in result.output.strip().splitlines()]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def reference() -> str:
    parts = [HEADING + settings_table(), "## Commands\n\n" + help_of()]
    parts += [f"### erasable {name}\n\n{help_of(*name.split())}" for name in command_names()]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(reference())
