"""Tests of a model that learns from features of items."""

import numpy as np
import pytest

from erasable.data.ids import Ids
from erasable.data.interactions import Interactions, RatingScale
from erasable.models.base import Amends, Change, Effort, Parameters, Size, Stage, Subtracts
from erasable.testing._suite import Suite, contents, made_up, represent, row_at, scorer, table

_SCALE = RatingScale(1, 5)
_ROWS = made_up(4, users=20, items=16)
_WEIGHT = 2


def _features(items: Ids, kinds: int = 3) -> Interactions:
    """Return features of items: every item is of one of some kinds, but for the last."""
    have = {f"kind {kind}": dict.fromkeys(items.texts()[kind:-1:kinds], _WEIGHT) for kind in range(kinds)}
    return table(have, catalogue=items).with_items(items)


class WithFeatures(Suite):
    """Tests of a model that `uses_features`; skipped for others."""

    def test_an_item_that_nobody_has_is_scored_by_its_features(self) -> None:
        """Two books of one author: whoever has the old one gets a higher score for the new one than for another's."""
        self._skip_without_features()
        catalogue = Ids.of(["ann's new", "ann's old", "bob's new", "bob's old", "pen"])
        people = {f"a{n}": {"ann's old": 1.0} for n in range(6)} | {f"b{n}": {"bob's old": 1.0} for n in range(6)}
        people = {user: {**own, **({"pen": 1.0} if int(user[1]) % 2 else {})} for user, own in people.items()}
        rows = table(people, catalogue=catalogue).with_items(catalogue)
        by_author = {name: {f"{name}'s new": 3.0, f"{name}'s old": 3.0} for name in ("ann", "bob")}
        features = table(by_author, catalogue=catalogue).with_items(catalogue)
        epochs, passes = (getattr(self.model.settings, name, 1) for name in ("epochs", "row_epochs"))
        at = Stage(rows, RatingScale(1, 1), epochs, 0, 0, features=features)
        trained = self.model.train(self.model.start(catalogue, 0), at, Effort())
        own = trained.rows or represent(self.model, trained.shared, Stage(rows, at.scale, passes, 0, 0), Effort())
        score = scorer(self.model, trained.shared)
        for user, name in enumerate(rows.users):
            found = dict(zip(catalogue, score(row_at(own, user), rows.items_at(user)).tolist(), strict=True))
            mine, other = ("ann", "bob") if name.startswith("a") else ("bob", "ann")
            assert found[f"{mine}'s new"] > found[f"{other}'s new"], name

    def test_features_change_what_is_learned_and_threads_do_not(self) -> None:
        """The same bytes on several threads, and others than without features."""
        self._skip_without_features()
        plain, one, several = (
            self._with_features(_ROWS, features, threads)
            for features, threads in ((None, 1), (_features(_ROWS.items), 1), (_features(_ROWS.items), 3))
        )
        assert contents(one.shared) == contents(several.shared)
        assert contents(one.shared) != contents(plain.shared)

    def test_with_features_training_reports_its_samples(self) -> None:
        """A feature counts like a person."""
        self._skip_without_features()
        features, done = _features(_ROWS.items), list[int]()
        size = Size.of(_ROWS).with_features(features, np.bincount(_ROWS.item_index, minlength=len(_ROWS.items)) > 0)
        start = self.model.start(_ROWS.items, 0)
        self.model.train(start, Stage(_ROWS, _SCALE, 3, 0, 0, features=features), Effort(2, done.append))
        assert sum(done) == self.model.samples(size, 3)

    @pytest.mark.parametrize("leaving", [["u0003"], ["u0000", "u0007", "u0012"], _ROWS.users.texts()])
    def test_with_features_a_shortcut_gives_the_bytes_of_training(self, leaving: list[str]) -> None:
        """Some people leave, or everyone; the features stay."""
        self._skip_without_features()
        if not isinstance(self.model, Amends):
            pytest.skip("the model has no shortcut")
        features, left = _features(_ROWS.items), _ROWS.without(users=leaving)
        before, change = self._with_features(_ROWS, features), Change.between(_ROWS, left)
        change = Change(change.taken, change.given, left, features=features)
        done = list[int]()
        amended = self.model.amended(before.shared, change, Effort(1, done.append))
        assert contents(amended) == contents(self._with_features(left, features).shared)
        assert sum(done) == self.model.samples_amended(left, change)
        if isinstance(self.model, Subtracts):
            assert self.model.provisional(before.shared, change).keys() >= amended.keys()

    def _with_features(self, rows: Interactions, features: Interactions | None, threads: int = 1) -> Parameters:
        at = Stage(rows, _SCALE, 2, 0, 0, features=features)
        return self.model.train(self.model.start(rows.items, 0), at, Effort(threads))

    def _skip_without_features(self) -> None:
        if not self.model.uses_features:
            pytest.skip("the model uses no features")
