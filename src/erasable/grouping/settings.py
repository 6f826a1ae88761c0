"""What can be set about groups."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

GroupingName = Literal["cbkm", "cbkm-near", "bkm", "clpa", "cgmm", "random", "independent", "given"]
OrderName = Literal["number", "easy", "hard", "count"]


class GroupingSettings(BaseModel):
    """How users are divided into groups, and in which order the groups are trained."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    grouping: GroupingName = "random"
    """How users are grouped: random (balanced) or independent (by the user's own id); the rest is not there yet."""

    groups: int = Field(8, ge=1, le=10_000)
    """How many groups, and so how many stages, the chain has."""

    order: OrderName = "number"
    """The order of the groups: by number, or by count of interactions, most first (easy and hard are not there yet)."""
