"""Rows that can't be used: collected while a source is read, then refused all together, or left out and counted."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from erasable.data.ids import ArrowColumn
from erasable.data.rating_scale import RatingScale
from erasable.errors import BadRows

OnBadRow = Literal["refuse", "skip"]
_SHOWN = 3


@dataclass(frozen=True)
class RowRules:
    """What a row is measured against, and what happens if one can't be used."""

    scale: RatingScale | None = None
    on_bad_row: OnBadRow = "refuse"


class RowFaults:
    """The rows of one source that can't be used, each with the first reason that was found."""

    def __init__(self) -> None:
        self._reasons: dict[int, str] = {}
        self._off_scale = False

    def add(self, row: int, reason: str) -> None:
        """Say why a row can't be used; of several reasons the first counts."""
        self._reasons.setdefault(row, reason)

    def add_where(self, faulty: ArrowColumn, reason: str) -> None:
        """Give the same reason to every row where the mask is true."""
        for row in np.flatnonzero(np.asarray(faulty)).tolist():
            self.add(row, reason)

    def add_off_scale(self, row: int, rating: float, scale: RatingScale) -> None:
        """Say that a rating lies outside the scale."""
        self._off_scale = True
        self.add(row, f"rating {rating:g} lies outside the scale {scale}: correct it, or drop the row")

    @property
    def rows(self) -> frozenset[int]:
        """The numbers of these rows."""
        return frozenset(self._reasons)

    def refusal(self, name: str, unit: str, total: int, first: int = 0) -> BadRows:
        """Return the error that counts them all and shows the first three; rows are numbered from `first`."""
        shown = sorted(self._reasons.items())[:_SHOWN]
        places = (part for row, reason in shown for part in (f"; {unit} {row + first}: ", reason))
        count = len(self._reasons)
        in_all = f"; in all {count:,} of {total:,} rows are bad" if count > 1 else ""
        return BadRows(f"{name}, {unit} {shown[0][0] + first}: ", *list(places)[1:], in_all, off_scale=self._off_scale)

    def __len__(self) -> int:
        return len(self._reasons)
