"""What other packages register as entry points: found by name, and imported only when used."""

from collections.abc import Collection
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points

from erasable.errors import WrongSetting


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
    near = get_close_matches(name, names, n=1)
    meant = f"did you mean {near[0]!r}? Else " if near else ""
    return (
        f"there is no {what} {name!r}: {meant}choose one of {', '.join(names)}, or install the package that registers "
        f"it (entry points {group!r})"
    )
