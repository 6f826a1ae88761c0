"""Recommender systems that can forget: learn, recommend, erase a person, and prove it byte for byte."""

TYPE_CHECKING = False  # as type checkers know it; `typing` itself takes time to load
if TYPE_CHECKING:
    from erasable.operations import Recommender

__version__ = "0.1.0"

__all__ = ["Recommender", "__version__"]


def __getattr__(name: str) -> object:
    """Load `Recommender` on first use: the command takes Ctrl-C before it loads anything."""
    if name == "Recommender":
        from erasable.operations import Recommender

        globals()[name] = Recommender
        return Recommender
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
