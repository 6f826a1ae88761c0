"""What tests need to know of each of our models beyond the suites that they inherit, and what tests share."""

from collections.abc import Mapping
from dataclasses import dataclass

from erasable.models import Model, find_model
from erasable.testing._suite import contents, contents_of, represent, row_at, scorer, train

__all__ = [
    "MODELS",
    "Kind",
    "contents",
    "contents_of",
    "represent",
    "row_at",
    "scorer",
    "train",
]


@dataclass(frozen=True)
class Kind:
    """A model in small settings, and its traits: in what it differs from others by nature."""

    name: str
    settings: Mapping[str, object]
    rows: frozenset[str] = frozenset({"user"})
    """The personal rows that it keeps."""
    seeded: bool = True
    """Whether the seed reaches every number, or none."""
    short_way: bool = False
    """Whether a change can be amended without training."""
    whole_numbers: frozenset[str] = frozenset()
    """Arrays of int32; all others are of float32."""

    @property
    def model(self) -> Model:
        """The model, made anew."""
        return find_model(self.name)(**self.settings)


def _ease(neighbours: object, *whole: str) -> Kind:
    settings = {"neighbours": neighbours, "regularisation": 5.0}
    return Kind("ease", settings, frozenset(), seeded=False, short_way=True, whole_numbers=frozenset(whole))


MODELS = {
    "nmf": Kind("nmf", {"batch": 128}),
    "dmf": Kind("dmf", {"batch": 128}),
    "als": Kind("als", {"factors": 8, "regularisation": 1.0}),
    "ease": _ease(5, "neighbours", "borders"),
    "dense ease": _ease("all", "gram"),
    "item-knn": Kind(
        "item-knn",
        {"neighbours": 5, "shrinkage": 2.0},
        frozenset(),
        seeded=False,
        short_way=True,
        whole_numbers=frozenset({"neighbours", "joint_counts", "counts"}),
    ),
    "popular": Kind(
        "popular", {}, frozenset(), seeded=False, short_way=True, whole_numbers=frozenset({"counts", "total"})
    ),
}
