"""What a workspace remembers of how it is used; none of it reaches a checkpoint."""

from pydantic import BaseModel, ConfigDict

from erasable.data import TimeForm


class Preferences(BaseModel):
    """What was said once and holds for every later command; an unknown field of a newer version is kept."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)

    columns: tuple[tuple[str, str], ...] = ()
    """Each meaning (user, item, rating, time) with the column of the input that it was read from."""
    time_kind: TimeForm | None = None
    """How times were written in the input."""
    users_are_numbers: bool = False
    """Whether the users' ids came as whole numbers, and the library gives them back so."""
    items_are_numbers: bool = False
    """The same for the items' ids."""
    do_not_learn: tuple[str, str] | None = None
    """Where the do-not-learn list and its key lie, relative to the workspace if they lie beside it."""
    do_not_learn_key: str | None = None
    """A digest under the list's own key, which the list names too: another list does not take its place unnoticed."""
    without_do_not_learn: bool = False
    """Whether it was declared that no such list is kept."""
    issuer: str | None = None
    """Who issues the certificates."""
    issuers: tuple[str, ...] = ()
    """Every name under which certificates were ever to be issued, the present one too."""
    queue: tuple[str, str] | None = None
    """Where requests are kept if not in the workspace: the address of a Postgres, without password, and the schema."""
    queue_id: str | None = None
    """The random id of the queue, which stands in it too; None until there is a queue, or where 0.1 made it."""
    readable_by_group: bool = False
    """Whether the group of the owner may read the files."""


NO_PREFERENCES = Preferences()
