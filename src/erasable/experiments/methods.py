"""The paper's methods by their names there, each a few settings of `erasable learn`."""

from collections.abc import Mapping
from typing import Any, Literal

MethodName = Literal[
    "Retrain", "C-SISA", "C-SISA own", "L-Rand", "L-BKM", "L-CBKM", "L-CBKM hard", "L-Near", "L-CLPA", "L-CGMM"
]

METHODS: Mapping[MethodName, Mapping[str, Any]] = {
    "Retrain": {"strategy": "retrain"},
    "C-SISA": {"strategy": "sisa", "aggregate": "mean", "grouping": "random"},
    "C-SISA own": {"strategy": "sisa", "aggregate": "own", "grouping": "random"},
    "L-Rand": {"strategy": "laser", "grouping": "random"},
    "L-BKM": {"strategy": "laser", "grouping": "bkm"},
    "L-CBKM": {"strategy": "laser", "grouping": "cbkm"},
    "L-CBKM hard": {"strategy": "laser", "grouping": "cbkm", "order": "hard"},
    "L-Near": {"strategy": "laser", "grouping": "cbkm-near"},
    "L-CLPA": {"strategy": "laser", "grouping": "clpa"},
    "L-CGMM": {"strategy": "laser", "grouping": "cgmm"},
}


def method_settings(method: MethodName, groups: int) -> dict[str, Any]:
    """Return the settings of a method; with one group all of them are the same as training everything at once."""
    if method == "Retrain" or groups == 1:
        return dict(METHODS["Retrain"])
    return {**METHODS[method], "groups": groups}
