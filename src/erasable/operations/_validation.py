"""Validation: settings are tried on rows that are taken from the training rows, so test rows never decide."""

import json
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from erasable.chain.settings import Config
from erasable.data.interactions import Interactions
from erasable.errors import Refused, option
from erasable.evaluation.protocols import measure, measured_people
from erasable.operations._one_model import learned_in_memory
from erasable.operations.prepare import RowsRead
from erasable.operations.work import Work

SHARE = 0.1
"""The share of the training rows that settings are tried on."""
_NEXT = 1  # the test rows are those with a small hash under the seed; under the next one, all rows have a chance


@dataclass(frozen=True, eq=False)
class Validation:
    """Training rows, and how they are divided again: into rows to learn and rows to measure on."""

    rows: RowsRead
    """The training rows alone; test rows are not here."""
    own: dict[str, Any]
    """The settings of the recommender for each trial."""
    work: Work

    @staticmethod
    def inside(rows: RowsRead, config: Config, work: Work) -> "Validation":
        """Set the test rows of a configuration aside, and the filter's rows, for good.

        Where the test rows are each person's latest, so are the validation rows among the rest; else they are a share.
        """
        dataset = rows.arranged(config, work)
        training = Interactions.joined([bucket.training for bucket in dataset.buckets]).by_id()
        last = config.splitting.name == "leave-last-out"
        split = {"split": "leave-last-out"} if last else {"holdout": SHARE}
        own = {"min_interactions": 0, "seed": (config.seed + _NEXT) % 2**63, **split}
        found = Validation(rows._replace(interactions=training), own, work)
        if not found.rows.arranged(config.changed(**own), work).counts.held_out:
            raise Refused(
                "there are too few interactions to try settings on: give more data, or a smaller ", option("holdout")
            )
        return found

    def checksum(self) -> int:
        """Return 16 bits of the training rows, which tell other data, and of a person less than any score."""
        rows, found = self.rows.interactions, 0
        for ids in (rows.users, rows.items):
            found = crc32(json.dumps(ids.texts()).encode(), found)
        for column in (rows.user_index, rows.item_index, rows.rating, rows.time):
            found = found if column is None else crc32(np.ascontiguousarray(column).data, found)
        return found % 2**16

    def score(self, config: Config, objective: str = "ndcg@10") -> float:
        """Learn the training rows less the validation rows, and return the quality on these."""
        trial = config.changed(**self.own)
        state, store, _ = learned_in_memory(self.rows, trial, self.work)
        people = measured_people(state.dataset)
        return measure(state, store, people, self.work.threads, metrics=[objective]).values[objective]
