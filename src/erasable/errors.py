"""The tree of errors; each message says what to do next, in Python's words and in the command's.

ErasableError
├── WrongUse                 an option or an argument makes no sense
│   └── WrongSetting         a setting does not exist, or has a wrong value
├── DataRefused              the input can't be read as interactions
│   └── BadRows              some of its rows can't be used; they can be left out
├── Refused                  the request can't be carried out; nothing was changed
│   ├── UnknownUser          the workspace holds nothing about that user
│   │   └── Suppressed       the user has asked to be erased and is not served
│   ├── UnknownInteraction   the user has no such interaction
│   ├── UnknownItem          the catalogue has no such item
│   ├── UnknownRequest       the queue has no such request
│   ├── UnknownModel         the workspace's model, or the grouping that it needs, is not installed or can't be loaded
│   ├── WrongModel           a method of a model failed or returned something wrong: its author must fix it
│   ├── NewerDocument        a later version wrote it, so this one can't read it
│   ├── ListUnusable         the do-not-learn list or its key is missing or damaged, or the two don't match
│   └── ResidueFound         the erasure is done, but a file still holds the person's data: it is not certified
├── WorkspaceError           the folder is not a workspace, or can't be used as it is
│   ├── WorkspaceDamaged     a file is missing, or differs from the manifest
│   ├── WorkspaceBusy        another command is writing
│   │   └── LeaseLost        another worker has taken over: this one may not write any more
│   ├── SuppressionUnknown   who has asked to be erased can't be read, so nobody is served
│   │   ├── QueueUnreachable the queue that the workspace names can't be reached
│   │   └── QueueLost        the workspace's queue is gone, empty, or a different one
│   └── DiskFull             there is no room to write; existing files are unchanged
├── NotAllowed               the caller may not do that
│   └── NoToken              the caller is unknown
├── NotReproducible          the numeric environment differs from the one that trained
└── Unfinished               interrupted after an irreversible step; run again to resume
"""

import re
from typing import Any


class Said(str):
    """A text for users of the library that also carries the wording for users of the command.

    >>> remedy = Said("forget([])", "erasable forget DIR --resume")
    >>> str(remedy), remedy.of_command
    ('forget([])', 'erasable forget DIR --resume')
    """

    of_command: str

    def __new__(cls, in_python: str, of_command: str) -> "Said":
        """Take both wordings."""
        text = super().__new__(cls, in_python)
        text.of_command = of_command
        return text

    def __reduce__(self) -> tuple[type["Said"], tuple[str, str]]:
        return Said, (str(self), self.of_command)


def said(*parts: str) -> Said:
    """Join texts, keeping both wordings; an f-string would lose the command's.

    >>> said("learn with ", option("holdout", 0.1), " first").of_command
    'learn with --holdout 0.1 first'
    """
    return Said("".join(map(str, parts)), "".join(map(of_command, parts)))


def of_command(text: str) -> str:
    """Return the wording of a text for users of the command."""
    return text.of_command if isinstance(text, Said) else text


def option(name: str, value: Any = None) -> Said:  # noqa: ANN401 - a value of a setting of many types
    """Name a setting, with a value if one is given, as a Python keyword and as an option of the command.

    >>> [(str(one), one.of_command) for one in (option("groups_from"), option("model", "nmf"))]
    [('groups_from', '--groups-from'), ("model='nmf'", '--model nmf')]
    """
    given = f"{value:g}" if isinstance(value, float) else value
    flag = "--" + name.replace("_", "-")
    if value is None:
        return Said(name, flag)
    return Said(f"{name}={given!r}" if isinstance(value, str) else f"{name}={given}", f"{flag} {given}")


class ErasableError(Exception):
    """Anything that erasable refuses or can't do, with a message for the library and one for the command."""

    def __init__(self, *parts: str) -> None:
        super().__init__(*parts)

    @property
    def said(self) -> Said:
        """The message, in both wordings."""
        return said(*self.args)

    @property
    def of_command(self) -> str:
        """The message for users of the command."""
        return self.said.of_command

    def __str__(self) -> str:
        return str(self.said)


class WrongUse(ErasableError):
    """An option or an argument makes no sense."""


class WrongSetting(WrongUse):
    """A setting does not exist, or has a wrong value; settings in backticks become options of the command.

    >>> print(WrongSetting('leave out `rows="stage"`, or give `groups`').of_command)
    leave out --rows stage, or give --groups
    """

    def __init__(self, in_python: str, of_command: str | None = None) -> None:
        super().__init__(Said(in_python, _SETTING.sub(_as_option, of_command or in_python)))


_SETTING = re.compile(r'`(\w+)(?:="?([^"`]*)"?)?`')


def _as_option(setting: re.Match[str]) -> str:
    name, value = setting.groups()
    return " ".join(["--" + name.replace("_", "-"), *([value] if value else [])])


class DataRefused(ErasableError):
    """The input can't be read as interactions."""


class BadRows(DataRefused):
    """Some rows of the input can't be used; they can be left out."""

    def __init__(self, *parts: str, off_scale: bool = False) -> None:
        super().__init__(*parts)
        self.off_scale = off_scale  # whether one of them has a rating outside the scale


class Refused(ErasableError):
    """The request can't be carried out; nothing was changed."""


class UnknownUser(Refused):
    """The workspace holds nothing about that user."""


class Suppressed(UnknownUser):
    """The user has asked to be erased and is not served."""


class UnknownInteraction(Refused):
    """The user has no such interaction."""


class UnknownItem(Refused):
    """The catalogue has no such item."""


class UnknownRequest(Refused):
    """The queue has no such request."""


class UnknownModel(Refused):
    """The workspace's model, or the grouping that it needs, is not installed or can't be loaded."""


class WrongModel(Refused):
    """A method of a model failed or returned something wrong: its author must fix it."""


class NewerDocument(Refused):
    """A later version wrote it, so this one can't read it."""


class ListUnusable(Refused):
    """The do-not-learn list or its key is missing or damaged, or the two don't match."""


class ResidueFound(Refused):
    """The erasure is done, but a file still holds the person's data: it is not certified."""


class WorkspaceError(ErasableError):
    """The folder is not a workspace, or can't be used as it is."""


class WorkspaceDamaged(WorkspaceError):
    """A file is missing, or differs from the manifest."""


class WorkspaceBusy(WorkspaceError):
    """Another command is writing."""


class LeaseLost(WorkspaceBusy):
    """Another worker has taken over: this one may not write any more."""


class SuppressionUnknown(WorkspaceError):
    """Who has asked to be erased can't be read, so nobody is served."""


class QueueUnreachable(SuppressionUnknown):
    """The queue that the workspace names can't be reached."""


class QueueLost(SuppressionUnknown):
    """The workspace's queue is gone, empty, or a different one."""


class DiskFull(WorkspaceError):
    """There is no room to write; existing files are unchanged."""


class NotAllowed(ErasableError):
    """The caller may not do that."""


class NoToken(NotAllowed):
    """The caller is unknown."""


class NotReproducible(ErasableError):
    """The numeric environment differs from the one that trained."""


class Unfinished(ErasableError):
    """Interrupted after an irreversible step; run again to resume."""


class ErasableWarning(UserWarning):
    """Something was done that is probably not what was meant; not an error."""


_OUTCOMES: dict[type[ErasableError], tuple[int, int]] = {
    WrongUse: (2, 422),
    DataRefused: (1, 422),
    UnknownUser: (1, 404),
    UnknownInteraction: (1, 404),
    UnknownItem: (1, 404),
    UnknownRequest: (1, 404),
    Refused: (1, 409),
    WorkspaceBusy: (1, 503),
    SuppressionUnknown: (1, 503),
    DiskFull: (1, 507),
    WorkspaceError: (1, 500),
    NoToken: (1, 401),
    NotAllowed: (1, 403),
    NotReproducible: (1, 409),
    Unfinished: (130, 503),
    ErasableError: (1, 500),
}


def exit_code(error: ErasableError) -> int:
    """Return the exit code of a command that ends with this error."""
    return _outcome(error)[0]


def http_status(error: ErasableError) -> int:
    """Return the HTTP status of a response that reports this error."""
    return _outcome(error)[1]


def _outcome(error: ErasableError) -> tuple[int, int]:
    return next(_OUTCOMES[kind] for kind in type(error).__mro__ if kind in _OUTCOMES)
