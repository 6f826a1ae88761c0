"""What can be set about groups."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

GroupingName = Literal["cbkm", "cbkm-near", "bkm", "clpa", "cgmm", "random", "independent", "given"]
"""Those that are built in; others are registered (registry.py)."""
OrderName = Literal["number", "easy", "hard", "count"]
MOST_GROUPS = 10_000
BY_VECTORS: tuple[GroupingName, ...] = ("cbkm", "cbkm-near", "clpa", "cgmm")
BY_LIKENESS: tuple[GroupingName, ...] = (*BY_VECTORS, "bkm")


class GroupingSettings(BaseModel):
    """How users are divided into groups, and in which order the groups are trained."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    grouping: str = "random"
    """How users are grouped: by vectors (cbkm, cbkm-near, clpa, cgmm), ratings (bkm), random, independent, or other."""

    groups: int = Field(8, ge=1, le=MOST_GROUPS)
    """How many groups, and so how many stages, the chain has."""

    order: OrderName | None = None
    """Which groups come first: easy (cohesive) or hard, by count of interactions, by number; easy if by likeness."""

    reach: int = Field(4, ge=4, le=64, multiple_of=2)
    """The paper's l: a hyperedge holds who is joined to a user by a path of fewer vertices (4: by a shared item)."""

    @model_validator(mode="after")
    def _usual_order(self) -> Self:
        if self.order is None:
            object.__setattr__(self, "order", "easy" if self.grouping in BY_LIKENESS else "number")
        return self
