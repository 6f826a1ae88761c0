"""What every document is: written once, and never changed."""

from pydantic import BaseModel, ConfigDict


class Paper(BaseModel):
    """What is written once and never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
