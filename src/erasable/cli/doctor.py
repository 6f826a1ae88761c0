"""`erasable doctor`."""

from erasable.cli.options import Json
from erasable.cli.output import print_json, print_table
from erasable.operations import available_cores
from erasable.training import numeric_environment

NAME = "doctor"


def command(json_output: Json = False) -> None:
    """Show the numeric environment, on which the promise of equal bytes rests."""
    facts = {"cores": str(available_cores()), **numeric_environment()}
    if json_output:
        print_json(facts)
    else:
        print_table(("", ""), list(facts.items()))
