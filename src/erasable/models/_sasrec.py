"""SASRec: self-attention over a person's sequence; no user parameters. The network is in `_sasrec_network`."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, model_validator

from erasable.models._torch_model import TorchModel, TorchSettings
from erasable.models.settings import Settings

if TYPE_CHECKING:
    from erasable.models._sasrec_network import SasrecNetwork


class SasrecSettings(TorchSettings):
    """Settings of SASRec."""

    epochs: int = Field(12, ge=1, le=10_000)
    """The total number of training epochs."""

    factors: int = Field(64, ge=1, le=4096)
    """How many numbers stand for an item, and for a step of a sequence."""

    blocks: int = Field(2, ge=1, le=64)
    """How many blocks of attention follow each other."""

    heads: int = Field(1, ge=1, le=64)
    """How many ways of attention each block has; they share the factors."""

    dropout: float = Field(0.2, ge=0, lt=1)
    """The share of numbers that training leaves out at random."""

    sampled: int = Field(0, ge=0, le=1_000_000)
    """How many items the softmax samples for each step, with their correction; 0 takes all items."""

    @model_validator(mode="after")
    def _divides(self) -> "SasrecSettings":
        if self.factors % self.heads:
            raise ValueError("`factors` must be a multiple of `heads`")
        return self


class SASRec(TorchModel):
    """SASRec: a person is what self-attention makes of their sequence, the latest items last (Kang and McAuley, 2018).

    Nobody has parameters of their own, so forgetting someone who is no anchor trains nothing. It needs the times of
    interactions, and the extra `torch`.

    Parameters
    ----------
    **settings
        Those of `SasrecSettings`, such as `factors`, `blocks`, `length`, `epochs`.

    Examples
    --------
    >>> SASRec(epochs=5, factors=32)
    SASRec(epochs=5, factors=32)
    """

    name: ClassVar[str] = "sasrec"
    revision: ClassVar[int] = 1
    settings: SasrecSettings
    settings_class: ClassVar[type[Settings]] = SasrecSettings
    uses_time: ClassVar[bool] = True

    def network(self, items: int) -> "SasrecNetwork":
        """Return the network for so many items."""
        from erasable.models._sasrec_network import SasrecNetwork

        return SasrecNetwork(items, self.settings)
