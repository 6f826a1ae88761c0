"""`erasable doctor`."""

from erasable.cli.options import Json
from erasable.cli.output import print_facts, print_json
from erasable.operations import available_cores
from erasable.training import numeric_environment

NAME = "doctor"


def command(json_output: Json = False) -> None:
    """Show the numeric environment, which equal bytes rest on."""
    facts = {"cores": str(available_cores()), **numeric_environment()}
    if json_output:
        print_json(facts)
    else:
        print_facts(facts)
