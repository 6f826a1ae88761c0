"""What was read and how it was understood, as numbers and in words; for the log, the command and its JSON."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from erasable.data import ReadResult
from erasable.operations.reporting import LOG
from erasable.requests.queue import LONG
from erasable.store import Preferences
from erasable.training import Knowledge

_REMEMBERED_ROLES = ("user", "item", "rating", "time")


@dataclass(frozen=True, kw_only=True)
class InputFacts:
    """The model, the columns taken by role and those left, and how many rows were read, dropped and left out."""

    model: str
    rating_scale: str
    columns: dict[str, str]
    columns_left: tuple[str, ...]
    rows_read: int
    """How many rows the input has."""
    repeated: int
    """How many of them went because a later one has the same user and item."""
    bad_rows: int
    """How many of them were left out because they can't be used."""

    @classmethod
    def of(cls, read: ReadResult, knowledge: Knowledge) -> "InputFacts":
        """Return the facts about what was read and what is known with it; they are logged too."""
        facts = cls(
            model=knowledge.config.model,
            rating_scale=str(knowledge.scale),
            columns=read.taken.columns,
            columns_left=read.taken.left,
            rows_read=read.rows,
            repeated=read.repeated,
            bad_rows=read.bad_rows,
        )
        for sentence in facts.in_words():
            LOG.info("%s", sentence)
        return facts

    def in_words(self) -> Iterator[str]:
        """Say the same in sentences."""
        yield f"model: {self.model}; rating scale: {self.rating_scale}"
        taken = ", ".join(role if role == name else f"{role} ({name})" for role, name in self.columns.items())
        yield f"columns taken: {taken}; left: {', '.join(self.columns_left) or 'none'}"
        bad = f"; bad rows left out: {self.bad_rows:,}" if self.bad_rows else ""
        yield f"rows read: {self.rows_read:,}; repeated (user, item) pairs dropped: {self.repeated:,}{bad}"


def remembering(preferences: Preferences, read: ReadResult) -> Preferences:
    """Return what a workspace remembers once it has learned from an input: columns, how times and ids are written.

    What was remembered before stays for a role that this input does not have; times are shown as they first came, and
    ids as whole numbers if they never came otherwise. The number of a column is kept only where it is not the usual
    one: 1 may be somebody's id.
    """
    columns = {
        role: read.taken.columns[role]
        for number, role in enumerate(_REMEMBERED_ROLES, start=1)
        if read.taken.columns.get(role, str(number)) != str(number)
    }
    return preferences.model_copy(
        update={
            "columns": tuple({**dict(preferences.columns), **columns}.items()),
            "time_kind": preferences.time_kind or read.taken.time_form,
            "users_are_numbers": preferences.users_are_numbers and "user" in read.taken.numbers,
            "items_are_numbers": preferences.items_are_numbers and "item" in read.taken.numbers,
        }
    )


def _names(column: str, user: str) -> bool:
    return user == column or (len(user) >= LONG and user in column)


def without_names_like(preferences: Preferences, users: Collection[str]) -> Preferences:
    """Return preferences without the columns whose names hold an id: a column may be called as somebody is."""
    ids = [user.casefold() for user in users]
    columns = [pair for pair in preferences.columns if not any(_names(pair[1].casefold(), user) for user in ids)]
    return preferences.model_copy(update={"columns": tuple(columns)})
