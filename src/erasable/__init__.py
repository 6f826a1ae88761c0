"""Recommender systems that can forget: learn, recommend, erase a person, and prove it byte for byte."""

TYPE_CHECKING = False  # type checkers know this name; importing `typing` takes time
if TYPE_CHECKING:
    from erasable.chain import Laser, Retrain, Sisa
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
    from erasable.models import ALS, DMF, EASE, NMF, ItemKNN, Popular, SASRec, TwoTower
    from erasable.operations import Claim, Inputs, ModelComparison, Outside, Tuned
    from erasable.proof.do_not_learn import DoNotLearnFiles
    from erasable.recommender import Recommender
    from erasable.recommender.choosing import compare, tune
    from erasable.requests import Request

__version__ = "0.3.0"

_UNITS = {
    "erasable.recommender": ("Recommender",),
    "erasable.recommender.choosing": ("compare", "tune"),
    "erasable.operations": ("Claim", "Inputs", "ModelComparison", "Outside", "Tuned"),
    "erasable.models": ("ALS", "DMF", "EASE", "ItemKNN", "NMF", "Popular", "SASRec", "TwoTower"),
    "erasable.chain": ("Laser", "Retrain", "Sisa"),
    "erasable.requests": ("Request",),
    "erasable.proof.do_not_learn": ("DoNotLearnFiles",),
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
_UNIT_OF = {name: unit for unit, names in _UNITS.items() for name in names}

__all__ = [
    "ALS",
    "DMF",
    "EASE",
    "NMF",
    "BadRows",
    "Claim",
    "DataRefused",
    "DiskFull",
    "DoNotLearnFiles",
    "ErasableError",
    "ErasableWarning",
    "Inputs",
    "ItemKNN",
    "Laser",
    "ListUnusable",
    "ModelComparison",
    "NewerDocument",
    "NotReproducible",
    "Outside",
    "Popular",
    "Recommender",
    "Refused",
    "Request",
    "ResidueFound",
    "Retrain",
    "SASRec",
    "Sisa",
    "Suppressed",
    "SuppressionUnknown",
    "Tuned",
    "TwoTower",
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
    "compare",
    "hit_rate",
    "ndcg",
    "recall",
    "tune",
]


def __getattr__(name: str) -> object:
    """Load a name on first use, so that the command can handle Ctrl-C before it loads anything."""
    if name not in _UNIT_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(_UNIT_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
