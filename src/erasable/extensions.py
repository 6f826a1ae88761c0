"""What other packages register as entry points: found by name, and imported only when used; how to install an extra."""

import json
import shlex
from collections.abc import Collection
from difflib import get_close_matches
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from urllib.parse import unquote, urlsplit

from erasable.errors import WrongSetting

_OURS = "erasable"


def registered(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, without importing them."""
    return {point.name: point for point in entry_points(group=group)}


def loaded(point: EntryPoint, what: str) -> object:
    """Import an entry point; any failure becomes one line with the name of the package.

    A name that several packages register is refused: the choice must not depend on the order of installation.
    """
    others = [other for other in entry_points(group=point.group) if other.name == point.name]
    if len({other.value for other in others}) > 1:
        packages = " and ".join(sorted(other.dist.name if other.dist else other.value for other in others))
        raise WrongSetting(f"the {what} {point.name!r} is registered by {packages}: remove all but one of them")
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # an import can fail in any way
        package = f"{point.dist.name}, which" if point.dist else "the package that"
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise WrongSetting(
            f"the {what} {point.name!r} can't be loaded ({said}): fix or remove {package} registers it as {point.value}"
        ) from error


def no_such_name(what: str, name: str, names: Collection[str], group: str) -> str:
    """Return the message for an unknown name, with the nearest known one and how to get others."""
    spelled = {_plain(one): one for one in names}
    near = get_close_matches(_plain(name), spelled, n=1)
    meant = f"did you mean {spelled[near[0]]!r}? Else " if near else ""
    return (
        f"there is no {what} {name!r}: {meant}choose one of {', '.join(names)}, or install the package that registers "
        f"it (entry points {group!r})"
    )


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def install_command(extra: str) -> str:
    """Return the command that installs an extra of ours from where we were installed (PEP 610).

    It may hold a path of this machine: no message that goes over HTTP may hold it.
    """
    try:
        found = json.loads(distribution(_OURS).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        found = {}
    url = str(found.get("url", ""))
    if url.startswith("file:"):
        place = shlex.quote(f"{unquote(urlsplit(url).path)}[{extra}]")
        editable = "-e " if found.get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}{place}"
    if url:
        version = found.get("vcs_info", {})
        kind, commit = (f"{version['vcs']}+", f"@{version['commit_id']}") if version else ("", "")
        return f"pip install {shlex.quote(f'{_OURS}[{extra}] @ {kind}{url}{commit}')}"
    return f"pip install {shlex.quote(f'{_OURS}[{extra}]')}"
