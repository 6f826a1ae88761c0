"""The one tree of errors; each message says what to do next.

ErasableError
├── WrongUse                 an option or an argument makes no sense
│   └── WrongSetting         a setting is not there, or has a wrong value
├── DataRefused              the input can't be read as interactions
│   └── BadRows              some of its rows can't be used; they can be left out
├── Refused                  the request can't be carried out; nothing was changed
│   ├── UnknownUser          the workspace holds nothing about that user
│   │   └── Suppressed       the user has asked to be erased and is not served
│   ├── UnknownInteraction   the user has no such interaction
│   ├── UnknownItem          the catalogue has no such item
│   ├── UnknownRequest       the ledger has no such request
│   ├── UnknownModel         the workspace's model, or the grouping that it needs, is not here or can't be loaded
│   ├── WrongModel           a method of a model failed, or returned what it must not: its author must mend it
│   ├── NewerDocument        a later version wrote it: this one can't judge it
│   ├── ListUnusable         the do-not-learn list or its key is missing, damaged, or of another key
│   └── ResidueFound         an erasure is done, but something still holds the person: it is not certified
├── WorkspaceError           the folder is no workspace, or can't be used as it is
│   ├── WorkspaceDamaged     a file is missing or is not what the manifest says
│   ├── WorkspaceBusy        another command is writing
│   │   └── LeaseLost        another worker has taken over: what this one does must not count any more
│   ├── SuppressionUnknown   who has asked to be erased can't be read: nobody is served
│   │   ├── QueueUnreachable the queue that the workspace names can't be reached: there is no other
│   │   └── QueueLost        the queue that the workspace has used is gone, empty, or another one
│   └── DiskFull             there is no room for what would be written; what was there stays
├── NotAllowed               whoever asks may not do that
│   └── NoToken              nobody knows who asks
├── NotReproducible          the numeric environment differs from the one that learned
└── Unfinished               stopped by its user after a step that can't be taken back; it can be gone on with
"""

import re
from typing import Any


class Said(str):
    """A text in Python's words, which knows how whoever runs a command has to hear it.

    >>> remedy = Said("forget([])", "erasable forget DIR --resume")
    >>> str(remedy), remedy.of_command
    ('forget([])', 'erasable forget DIR --resume')
    """

    of_command: str

    def __new__(cls, in_python: str, of_command: str) -> "Said":
        """Say the same twice."""
        text = super().__new__(cls, in_python)
        text.of_command = of_command
        return text

    def __reduce__(self) -> tuple[type["Said"], tuple[str, str]]:
        return Said, (str(self), self.of_command)


def said(*parts: str) -> Said:
    """Join texts; what has two wordings keeps both. In an f-string it would lose the command's.

    >>> said("learn with ", option("holdout", 0.1), " first").of_command
    'learn with --holdout 0.1 first'
    """
    return Said("".join(map(str, parts)), "".join(map(of_command, parts)))


def of_command(text: str) -> str:
    """Return a text as whoever runs a command has to hear it."""
    return text.of_command if isinstance(text, Said) else text


def option(name: str, value: Any = None) -> Said:  # noqa: ANN401 - a value of a setting of many types
    """Name a setting, with a value if one is given, as a keyword of Python and as an option of the command.

    >>> [(str(one), one.of_command) for one in (option("groups_from"), option("model", "nmf"))]
    [('groups_from', '--groups-from'), ("model='nmf'", '--model nmf')]
    """
    given = f"{value:g}" if isinstance(value, float) else value
    flag = "--" + name.replace("_", "-")
    if value is None:
        return Said(name, flag)
    return Said(f"{name}={given!r}" if isinstance(value, str) else f"{name}={given}", f"{flag} {given}")


class ErasableError(Exception):
    """Anything that erasable refuses or can't do, said in Python's words and in the command's."""

    def __init__(self, *parts: str) -> None:
        super().__init__(*parts)

    @property
    def said(self) -> Said:
        """What it says, in both wordings."""
        return said(*self.args)

    @property
    def of_command(self) -> str:
        """What it says to whoever runs a command."""
        return self.said.of_command

    def __str__(self) -> str:
        return str(self.said)


class WrongUse(ErasableError):
    """An option or an argument makes no sense."""


class WrongSetting(WrongUse):
    """A setting is not there, or has a wrong value: said in Python's words, or as an option of the command.

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
    """Some of its rows can't be used; they can be left out."""

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
    """The ledger has no such request."""


class UnknownModel(Refused):
    """The workspace's model, or the grouping that it needs, is not here or can't be loaded."""


class WrongModel(Refused):
    """A method of a model failed, or returned what it must not: its author must mend it."""


class NewerDocument(Refused):
    """A later version wrote it: this one can't judge it."""


class ListUnusable(Refused):
    """The do-not-learn list or its key is missing, damaged, or of another key."""


class ResidueFound(Refused):
    """An erasure is done, but something still holds the person: it is not certified."""


class WorkspaceError(ErasableError):
    """The folder is no workspace, or can't be used as it is."""


class WorkspaceDamaged(WorkspaceError):
    """A file is missing or is not what the manifest says."""


class WorkspaceBusy(WorkspaceError):
    """Another command is writing."""


class LeaseLost(WorkspaceBusy):
    """Another worker has taken over: what this one does must not count any more."""


class SuppressionUnknown(WorkspaceError):
    """Who has asked to be erased can't be read: nobody is served."""


class QueueUnreachable(SuppressionUnknown):
    """The queue that the workspace names can't be reached: there is no other."""


class QueueLost(SuppressionUnknown):
    """The queue that the workspace has used is gone, empty, or another one."""


class DiskFull(WorkspaceError):
    """There is no room for what would be written; what was there stays."""


class NotAllowed(ErasableError):
    """Whoever asks may not do that."""


class NoToken(NotAllowed):
    """Nobody knows who asks."""


class NotReproducible(ErasableError):
    """The numeric environment differs from the one that learned."""


class Unfinished(ErasableError):
    """Stopped by its user after a step that can't be taken back; it can be gone on with."""


class ErasableWarning(UserWarning):
    """Something was done that is most likely not what was meant; it is no error."""


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
    """Return the HTTP status of an answer that reports this error."""
    return _outcome(error)[1]


def _outcome(error: ErasableError) -> tuple[int, int]:
    return next(_OUTCOMES[kind] for kind in type(error).__mro__ if kind in _OUTCOMES)
