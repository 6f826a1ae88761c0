"""What a scan looks for, and what it reports; neither searching nor files here."""

from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray

from erasable.data import NONE_NEAR, Ids, Interactions, NearIds

What = Literal["id", "interactions", "personal row", "text"]


@dataclass(frozen=True, eq=False)
class Target:
    """What to look for about one person."""

    user: str
    items: tuple[str, ...] | None = None
    """Only the interactions with these items were erased and the user stays; none: everything."""
    rows: Interactions | None = None
    """What was held of what is erased, if it is still known."""
    personal: tuple[NDArray[Any], ...] = ()
    """The person's personal rows as they were before."""
    texts: tuple[str, ...] = ()
    """Other texts that must be gone, such as fingerprints of destroyed checkpoints."""
    own_items: tuple[str, ...] = ()
    """Items that nobody has any more, which are gone with the person."""


@dataclass(frozen=True)
class Held:
    """The ids that the data really hold: nothing else explains where a searched id is a part of something longer."""

    users: tuple[Ids, ...] = ()
    items: tuple[Ids, ...] = ()
    declared: tuple[str, ...] = ()
    """Names of issuers, which stand in the manifest and on certificates and are nobody's there."""
    settings: tuple[str, ...] = ()
    """The names of the settings of the model, which stand in files of ours and are nobody's there."""


NOTHING_HELD = Held()


@dataclass(frozen=True)
class Residue:
    """One place that still holds something of a person."""

    file: str
    """The path below the folder, with slashes."""
    place: str
    """Where in the file, in words."""
    what: What
    of: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """Which ids, items or texts that were looked for stand there; empty where values were found that name nobody."""


@dataclass(frozen=True)
class Scan:
    """What was searched, how, and what was found."""

    files: int
    bytes: int
    kinds: dict[str, int]
    """How many files were read as parquet, arrow, safetensors, json, sqlite, text and other."""
    searched: tuple[str, ...]
    """What was searched and how, in sentences free of personal data."""
    residues: tuple[Residue, ...]
    near: NearIds = NONE_NEAR
    """Where nothing is held under the id: how many ids are held that differ from it only a little."""

    @property
    def clean(self) -> bool:
        """Whether nothing was found, and nobody is held who is most likely the same."""
        return not self.residues and not self.near.held
