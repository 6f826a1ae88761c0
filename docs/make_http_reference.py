"""Write the reference page of the service's HTTP interface from its own OpenAPI description (see scripts/reference)."""

import sys
from types import SimpleNamespace
from typing import Any, cast

from erasable.service._running import make_application
from erasable.service._service import Service
from erasable.service.settings import ServiceSettings
from erasable.service.web._reference import Documented, Field, documented_routes

HEADING = """# HTTP

Made from the service's own OpenAPI description by `scripts/reference`; change the sentences in the code, not here. A
service that runs shows the same at `/docs`, and gives the description itself at `/openapi.json`.

Every error has one shape (RFC 9457, `application/problem+json`): `status`, `title`, `detail`, `faults`.
[How to run it](../how-to/deployment.md), with what each role may do.
"""


def application() -> Any:  # noqa: ANN401 - FastAPI's own type
    """Return the service's routes without a workspace behind them: nothing is asked of it here."""
    return make_application(cast(Service, SimpleNamespace(settings=ServiceSettings(), storage=None)))


def cell(text: str) -> str:
    """Return a text as the cell of a table, on one line."""
    return " ".join(text.split()).replace("|", "\\|")


def fields_table(fields: list[Field], heading: str) -> str:
    rows = [
        f"| `{one.name}` | {cell(one.kind)} | {'yes' if one.required else ''} | {cell(one.about)} |".replace(
            "|  |", "| |"
        )
        for one in fields
    ]
    return (
        f"{heading}\n\n| name | type | required | meaning |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
        if rows
        else ""
    )


def route_text(route: Documented) -> str:
    """Return the part of the page that is about one route."""
    who = ", ".join(route.roles) if route.roles else "anyone"
    parts = [
        f"### {route.method} {route.path}\n",
        f"{route.about.strip()}\n" if route.about.strip() else "",
        f"For: {who}.\n",
        fields_table(list(route.parameters), "Parameters:"),
        fields_table(list(route.body), "Body:"),
        *(fields_table(list(one.fields), f"Answer {one.status} ({one.about}):") for one in route.answers),
        f"```sh\n{route.curl}\n```\n",
    ]
    return "\n".join(filter(None, parts))


def reference() -> str:
    parts = [HEADING]
    for subject, routes in documented_routes(application()).items():
        parts.append(f"## {subject[:1].upper()}{subject[1:]}\n")
        parts += [route_text(route) for route in routes]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(reference())
