"""A front door that loads each name on first use: whoever needs one file of a unit does not wait for the others.

What that saves is in decision 50.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType


class FrontDoor(ModuleType):
    """The module of a unit, whose names are loaded from its files on first use."""

    module_of: dict[str, str]

    def __getattr__(self, name: str) -> object:
        """Load a name."""
        if name not in self.module_of:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found: object = getattr(import_module(self.module_of[name]), name)
        super().__setattr__(name, found)
        return found

    def __setattr__(self, name: str, value: object) -> None:
        """Set a name; importing `operations.forget` does not replace the function `forget` by its file."""
        if name not in self.module_of or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """Return all names, loaded or not."""
        return sorted({*super().__dir__(), *self.module_of})


def load_on_first_use(unit: str, names: Mapping[str, str]) -> None:
    """Let a unit load its names on first use, given those of each module, separated by spaces."""
    module = sys.modules[unit]
    module.__dict__["module_of"] = {name: file for file, found in names.items() for name in found.split()}
    module.__class__ = FrontDoor
