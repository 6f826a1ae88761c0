"""A cache that another thread clears at the worst moment."""

from typing import Any


class Cleared(dict[Any, Any]):
    """It is empty again as soon as something is written into it."""

    def __setitem__(self, name: Any, value: Any) -> None:
        super().__setitem__(name, value)
        self.clear()
