"""`erasable serve`: checks what it can, then becomes the process of the erasure service."""

import json
import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from erasable.cli.options import PLACES, Folder, Issuer, Threads, do_not_learn_from, parameters_of, settings_options
from erasable.cli.output import print_line
from erasable.errors import Refused, WrongUse
from erasable.extensions import install_command
from erasable.operations.inspect import status
from erasable.operations.recording import name_issuer, name_queue
from erasable.operations.storage import DiskStorage
from erasable.requests.opening import open_database
from erasable.requests.tokens import Tokens
from erasable.service.settings import ServiceSettings, settings_from

NAME = "serve"
SERVICE_OPTIONS = parameters_of(ServiceSettings)
_NEEDED = ("fastapi", "uvicorn", "jinja2", "prometheus_client")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@settings_options(SERVICE_OPTIONS, PLACES)
def command(
    folder: Folder,
    host: Annotated[
        str, typer.Option(help="The address to listen on; others than this machine's need a proxy.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 8080,
    queue: Annotated[
        str | None,
        typer.Option(help="A Postgres to keep requests in from now on: postgresql://user@host/database, no password."),
    ] = None,
    issuer: Issuer = None,
    threads: Threads = None,
    settings: dict[str, Any] | None = None,
    listed: dict[str, Any] | None = None,
) -> None:
    """Run the erasure service: requests in, certificates out."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise WrongUse(f"the service needs {', '.join(missing)}: run {install_command('service')}")
    chosen = settings_from(settings or {})
    named = do_not_learn_from(listed or {})
    status(DiskStorage(folder))  # refuses a folder that is no workspace
    _refuse_taken(host, port)
    if queue is not None:
        name_queue(DiskStorage(folder), queue)
    if issuer is not None:
        name_issuer(DiskStorage(folder), issuer)
    _tell(folder, host, port)
    place = {
        "folder": str(folder.absolute()),
        "host": host,
        "port": port,
        "threads": threads,
        "settings": chosen.model_dump(),
        "suppression_list": None if named is None else str(named.list.absolute()),
        "suppression_key": None if named is None else str(named.key.absolute()),
    }
    # With -P: else an enum.py in the working folder would be imported.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "erasable.service", json.dumps(place)])  # noqa: S606 - ourselves


def _refuse_taken(host: str, port: int) -> None:
    """Refuse an address that can't be listened on, before anything is printed or loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except OSError as error:
        reason = error.strerror or error
        raise Refused(f"{host}, port {port}, can't be listened on ({reason}): give another --port or --host") from None


def _tell(folder: Path, host: str, port: int) -> None:
    database = open_database(folder)
    in_use = [token for token in Tokens(database).all() if token.revoked is None]
    database.close()
    shown = f"[{host}]" if ":" in host else host
    print_line(f"serving {folder} at http://{shown}:{port} (pages at /, API at /docs); Ctrl-C ends it")
    if not in_use:
        print_line(f"there is no token yet, so nobody can sign in: erasable token create {folder} --role operator")
    if host not in _LOOPBACK:
        print_line("other machines can reach this without encryption: put a proxy with TLS in front of it")
