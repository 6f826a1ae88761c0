"""The strategies: how a model is learned so that it can forget; each owns its settings."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol, Self

from pydantic import model_validator

from erasable.grouping.registry import GroupingSettings
from erasable.models.settings import Configured, Settings

Policy = Literal["fixed", "independent", "regroup"]
Aggregate = Literal["mean", "own"]


class LaserSettings(GroupingSettings, Settings):
    """The settings of the strategy `laser`."""

    earlier: ClassVar[Mapping[str, Any]] = {"vectors": "gensim"}

    epoch_budget: Literal["shared", "full"] = "shared"
    """Whether the groups share the epochs (the quotient, rounded up, for each) or each gets all of them."""

    policy: Policy = "fixed"
    """How far back exactness goes: fixed (given groups and filter), regroup (recomputed each time) or independent."""

    @model_validator(mode="after")
    def _policy_and_groups_agree(self) -> Self:
        if self.grouping == "independent" and self.policy == "fixed":
            object.__setattr__(self, "policy", "independent")
        if self.grouping == "given" and self.policy == "regroup":
            raise ValueError('given groups can\'t be computed again: give `policy="fixed"`')
        if self.policy == "independent" and self.grouping != "independent":
            raise ValueError(
                'the policy independent needs the grouping independent: give `grouping="independent"` or '
                '`policy="fixed"`'
            )
        if self.grouping == "independent" and self.order != "number":
            raise ValueError('groups that are independent have the order number: give `order="number"`')
        return self


class SisaSettings(LaserSettings):
    """The settings of the strategy `sisa`."""

    aggregate: Aggregate = "mean"
    """Which models score: the mean of all, or the model of the user's own group."""


class RetrainSettings(Settings):
    """The settings of the strategy `retrain`."""

    policy: Policy = "fixed"
    """How far back exactness goes: fixed (given groups and filter), regroup (recomputed each time) or independent."""


class Strategy(Protocol):
    """How a model is learned: its groups, and the epochs of each stage."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def settings(self) -> Settings:
        """Its settings."""

    @property
    def policy(self) -> Policy:
        """How far back exactness goes."""

    @property
    def grouping(self) -> GroupingSettings:
        """How users are divided."""

    @property
    def aggregate(self) -> Aggregate | None:
        """What scores, if there are several models."""

    def stage_epochs(self, epochs: int) -> int:
        """Return how many epochs each stage gets, of the total."""


class Laser(Configured[LaserSettings]):
    """Trains groups one after another, each stage starting from the one before: the paper's strategy.

    Parameters
    ----------
    **settings
        Those of `LaserSettings`: `groups`, `grouping`, `order`, `reach`, `vectors`, `epoch_budget`, `policy`.

    Examples
    --------
    >>> Laser(groups=4)
    Laser(groups=4)
    """

    name: ClassVar[str] = "laser"
    settings_class: ClassVar[type[Settings]] = LaserSettings

    @property
    def policy(self) -> Policy:
        """How far back exactness goes."""
        return self.settings.policy

    @property
    def grouping(self) -> GroupingSettings:
        """How users are divided."""
        return self.settings

    @property
    def aggregate(self) -> Aggregate | None:
        """Return none: there is one model."""
        return None

    def stage_epochs(self, epochs: int) -> int:
        """Return how many epochs each stage gets, of the total."""
        return epochs if self.settings.epoch_budget == "full" else math.ceil(epochs / self.settings.groups)


class Sisa(Laser):
    """Trains a separate model for each group (SISA).

    Parameters
    ----------
    **settings
        Those of `SisaSettings`: those of `Laser`, and `aggregate`.

    Examples
    --------
    >>> Sisa(groups=4, aggregate="own")
    Sisa(groups=4, aggregate='own')
    """

    name: ClassVar[str] = "sisa"
    settings_class: ClassVar[type[Settings]] = SisaSettings

    @property
    def aggregate(self) -> Aggregate | None:
        """What scores."""
        return self.settings.aggregate if isinstance(self.settings, SisaSettings) else None


class Retrain(Configured[RetrainSettings]):
    """Trains all users at once, in one group.

    Parameters
    ----------
    **settings
        That of `RetrainSettings`: `policy`.

    Examples
    --------
    >>> Retrain()
    Retrain()
    """

    name: ClassVar[str] = "retrain"
    settings_class: ClassVar[type[Settings]] = RetrainSettings

    @property
    def policy(self) -> Policy:
        """How far back exactness goes."""
        return self.settings.policy

    @property
    def grouping(self) -> GroupingSettings:
        """Return the settings of a single group; under the policy independent, new users join it."""
        return GroupingSettings(groups=1, grouping="independent" if self.policy == "independent" else "random")

    @property
    def aggregate(self) -> Aggregate | None:
        """Return none: there is one model."""
        return None

    def stage_epochs(self, epochs: int) -> int:
        """Return all epochs: there is one stage."""
        return epochs


STRATEGIES: Mapping[str, type[Laser | Retrain]] = {"laser": Laser, "sisa": Sisa, "retrain": Retrain}
