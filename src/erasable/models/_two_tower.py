"""Two towers: one for a person's own items, one for items; no user parameters. Their network: `_two_tower_network`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from erasable.models._torch_model import TorchModel, TorchSettings
from erasable.models.settings import Settings

if TYPE_CHECKING:
    from erasable.models._two_tower_network import TwoTowerNetwork


class TwoTowerSettings(TorchSettings):
    """Settings of the two towers."""

    epochs: int = Field(40, ge=1, le=10_000)
    """The total number of training epochs."""

    batch: int = Field(128, ge=1, le=1_000_000)
    """How many histories, or pieces of them, each step uses."""

    learning_rate: float = Field(0.003, gt=0, le=1)
    """Adam's step size at the beginning of a stage; it falls to 0 until its end."""

    length: int = Field(1000, ge=1, le=100_000)
    """How many items of a history are looked at together; training takes longer ones in pieces."""

    factors: int = Field(256, ge=1, le=4096)
    """How many numbers stand for a person, and for an item."""

    hidden: int = Field(512, ge=1, le=65_536)
    """How many numbers the hidden layer of each tower has."""

    masked: float = Field(0.5, gt=0, lt=1)
    """The share of a person's items that each step masks, and predicts from the others."""


class TwoTower(TorchModel):
    """Two towers: a person is the mean of their own items, through a network; an item has a network too.

    Nobody has parameters of their own, so forgetting someone who is no anchor trains nothing. It needs the extra
    `torch`, and no times.

    Parameters
    ----------
    **settings
        Those of `TwoTowerSettings`, such as `factors`, `hidden`, `epochs`.

    Examples
    --------
    >>> TwoTower(epochs=5, factors=32)
    TwoTower(epochs=5, factors=32)
    """

    name: ClassVar[str] = "two-tower"
    revision: ClassVar[int] = 1
    settings: TwoTowerSettings
    settings_class: ClassVar[type[Settings]] = TwoTowerSettings
    item_tables: ClassVar[Mapping[str, float]] = {
        "owned.weight": 0.1,
        "offered.weight": 0.1,
        "popularity.weight": 0.01,
    }

    def network(self, items: int) -> "TwoTowerNetwork":
        """Return the network for so many items."""
        from erasable.models._two_tower_network import TwoTowerNetwork

        return TwoTowerNetwork(items, self.settings)
