"""`erasable status`."""

from erasable.cli.options import Folder, Json
from erasable.cli.output import print_facts, print_json, print_line
from erasable.errors import of_command
from erasable.operations.inspect import status
from erasable.operations.storage import DiskStorage
from erasable.wording import percentage

NAME = "status"
_ONLY_OF_GROUPS = ("grouping", "groups")


def command(folder: Folder, json_output: Json = False) -> None:
    """Show what a workspace holds."""
    found = status(DiskStorage(folder))
    if json_output:
        print_json(found)
    else:
        fault = found.pop("queue_fault")
        kept, list_file, key_file = found["do_not_learn"].values()
        listed = f"{list_file} (its key: {key_file})" if list_file else kept
        unsaid = {*_ONLY_OF_GROUPS, *(["rows"] if found["rows"] == "stage" else [])} if found["groups"] == 1 else set()
        shown = {name: value for name, value in found.items() if value != [] and name not in unsaid}
        shown |= {"anchors": percentage(found["anchors"]), "do_not_learn": listed}
        shown |= {"features": ", ".join(found["features"])} if found["features"] else {}
        print_facts(shown | ({} if fault is None else {"suppressed": "not known"}))
        if fault is not None:
            print_line(of_command(fault))
