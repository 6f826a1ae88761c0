"""Recommender systems that can forget: learn, recommend, erase a person, and prove it byte for byte."""

TYPE_CHECKING = False  # as type checkers know it; `typing` itself takes time to load
if TYPE_CHECKING:
    from erasable.errors import (
        BadRows,
        DataRefused,
        DiskFull,
        ErasableError,
        ErasableWarning,
        ListUnusable,
        NewerDocument,
        NotReproducible,
        Refused,
        ResidueFound,
        Suppressed,
        SuppressionUnknown,
        Unfinished,
        UnknownInteraction,
        UnknownItem,
        UnknownModel,
        UnknownUser,
        WorkspaceBusy,
        WorkspaceDamaged,
        WorkspaceError,
        WrongModel,
        WrongSetting,
        WrongUse,
    )
    from erasable.evaluation import hit_rate, ndcg, recall
    from erasable.models import ALS, DMF, EASE, NMF
    from erasable.operations import Claim, Inputs, Outside, Recommender
    from erasable.proof.suppression import Suppression
    from erasable.requests import Request
    from erasable.training import Laser, Retrain, Sisa

__version__ = "0.1.0"

_HOMES = {
    "erasable.operations": ("Claim", "Inputs", "Outside", "Recommender"),
    "erasable.models": ("ALS", "DMF", "EASE", "NMF"),
    "erasable.training": ("Laser", "Retrain", "Sisa"),
    "erasable.requests": ("Request",),
    "erasable.proof.suppression": ("Suppression",),
    "erasable.evaluation": ("hit_rate", "ndcg", "recall"),
    "erasable.errors": (
        *("BadRows", "DataRefused", "DiskFull", "ErasableError", "ErasableWarning", "ListUnusable", "NewerDocument"),
        "NotReproducible",
        *("Refused", "ResidueFound", "Suppressed", "SuppressionUnknown", "Unfinished", "UnknownInteraction"),
        *(
            "UnknownItem",
            "UnknownModel",
            "UnknownUser",
            "WorkspaceBusy",
            "WorkspaceDamaged",
            "WorkspaceError",
            "WrongModel",
            "WrongSetting",
        ),
        "WrongUse",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ALS",
    "DMF",
    "EASE",
    "NMF",
    "BadRows",
    "Claim",
    "DataRefused",
    "DiskFull",
    "ErasableError",
    "ErasableWarning",
    "Inputs",
    "Laser",
    "ListUnusable",
    "NewerDocument",
    "NotReproducible",
    "Outside",
    "Recommender",
    "Refused",
    "Request",
    "ResidueFound",
    "Retrain",
    "Sisa",
    "Suppressed",
    "Suppression",
    "SuppressionUnknown",
    "Unfinished",
    "UnknownInteraction",
    "UnknownItem",
    "UnknownModel",
    "UnknownUser",
    "WorkspaceBusy",
    "WorkspaceDamaged",
    "WorkspaceError",
    "WrongModel",
    "WrongSetting",
    "WrongUse",
    "__version__",
    "hit_rate",
    "ndcg",
    "recall",
]


def __getattr__(name: str) -> object:
    """Load a name on first use: the command takes Ctrl-C before it loads anything."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
