"""Tests of a model's optional abilities, and of settings that it declares to reach no stage."""

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from erasable.data.catalogue import over_own_items
from erasable.data.ids import Ids
from erasable.data.interactions import Interactions
from erasable.data.rating_scale import RatingScale
from erasable.errors import WrongSetting
from erasable.models.base import (
    Amends,
    Arrays,
    Change,
    Effort,
    Explains,
    Model,
    Prepares,
    Subtracts,
    TellsSimilarItems,
    prepared_by,
)
from erasable.testing._suite import (
    Suite,
    bytes_by_user,
    checkerboard,
    contents,
    contents_of,
    made_up,
    row_at,
    scorer,
    stage,
)

_SCALE = RatingScale(1, 5)
_ROWS = made_up(5, users=30, items=25)
_OTHERS = made_up(6, users=40, items=25)
_AFTER = {
    "nothing": _ROWS,
    "one goes": _ROWS.without(users=["u0004"]),
    "the one with every item goes": _ROWS.without(users=["u0000"]),
    "some in part": _ROWS.without(users=["u0003"], pairs=[("u0000", "i004"), ("u0000", "i009")]),
    "everyone goes": _ROWS.without(users=_ROWS.users.texts()),
}
_AT = stage(_OTHERS, scale=_SCALE, epochs=2)


class Abilities(Suite):
    """Tests of `Prepares`, `Amends`, `Subtracts`, `TellsSimilarItems`, `Explains` and `only_for_rows`."""

    def test_settings_that_reach_no_stage_change_no_byte_of_it(self) -> None:
        """Those of `only_for_rows`, and `epochs`, which the strategy divides among stages (`stage.epochs`)."""
        settings = self.model.settings
        trained = contents_of(self.model.train(self.model.start(_ROWS.items, 0), stage(_ROWS), Effort()))
        for name in sorted({"epochs", *settings.only_for_rows} & type(settings).model_fields.keys()):
            other = self._otherwise(name)
            found = other.train(other.start(_ROWS.items, 0), stage(_ROWS), Effort())
            assert contents_of(found) == trained, f"the setting {name!r} reaches a stage"

    def test_what_is_prepared_follows_from_the_shared_parameters_alone(self) -> None:
        """Earlier calls of `prepare` and `score` don't matter, and nothing is changed in place (`Prepares`)."""
        if isinstance(self.model, Prepares):
            several = [self._trained(rows) for rows in (_ROWS, _OTHERS)]
            several = [{name: array.copy() for name, array in one.items()} for one in several]
            before = [contents(one) for one in several]
            alone = [_judged(fresh, prepared_by(fresh, one)) for one in several for fresh in [self.made_anew()]]
            prepared = [self.model.prepare(one) for one in several]
            for _ in range(2):
                assert [_judged(self.model, one) for one in prepared] == alone
            assert alone[0] != alone[1]
            assert [contents(one) for one in several] == before

    @pytest.mark.parametrize("after", _AFTER.values(), ids=_AFTER)
    def test_to_amend_is_to_train_on_the_changed_data(self, after: Interactions) -> None:
        """Amending gives the same bytes, there and back, also when items come and go (`Amends`)."""
        if isinstance(self.model, Amends):
            (one,), (other,) = over_own_items([_ROWS]), over_own_items([after])
            for before, then in ((_ROWS, after), (after, _ROWS), (one, other), (other, one)):
                change, trained = Change.between(before, then), self._trained(before)
                known = contents(trained)
                assert contents(self.model.amended(trained, change, Effort(2))) == contents(self._trained(then))
                assert contents(trained) == known
                assert self.model.samples_amended(then, change) >= 0

    @pytest.mark.parametrize("after", _AFTER.values(), ids=_AFTER)
    def test_what_is_served_in_between_is_finite_and_changes_nothing(self, after: Interactions) -> None:
        """Until a change is trained (`Subtracts`)."""
        if isinstance(self.model, Subtracts):
            trained = self._trained(_ROWS)
            before = contents(trained)
            provisional = self.model.provisional(trained, Change.between(_ROWS, after))
            prepared = prepared_by(self.model, provisional)
            newcomer = row_at(self.model.newcomers(prepared, Ids.of(["new"]), _ROWS.items, 0), 0)
            score = scorer(self.model, provisional)
            assert all(np.isfinite(score(newcomer, after.items_at(user))).all() for user in range(len(after.users)))
            assert contents(trained) == before

    @pytest.mark.parametrize("after", _AFTER.values(), ids=_AFTER)
    def test_what_is_served_in_between_is_rid_of_who_leaves(self, after: Interactions) -> None:
        """Others are scored nearly as without them: at most `left_in_between` of their influence is left."""
        if isinstance(self.model, Subtracts):
            trained = self._trained(_ROWS)
            served = self.model.provisional(trained, Change.between(_ROWS, after))
            learned, found, wanted = (self._scores_of_others(one) for one in (trained, served, self._trained(after)))
            assert np.abs(found - wanted).sum() <= self.left_in_between * np.abs(learned - wanted).sum()

    def test_items_that_the_same_people_have_are_alike(self) -> None:
        """On a checkerboard the five most similar items have the item's colour (`TellsSimilarItems`)."""
        if isinstance(self.model, TellsSimilarItems):
            shared = self.learned(checkerboard()[0]).shared
            for number in (0, 7, 39):
                found = self.model.similar(shared, number)
                others = [item for item in np.argsort(-found, kind="stable") if item != number][:5]
                assert all(item % 2 == number % 2 for item in others)
                assert found[others].min() > 0

    def test_how_much_items_are_alike_follows_from_the_shared_parameters_alone(self) -> None:
        """One finite float32 for each item, whatever was called before (`TellsSimilarItems`)."""
        if isinstance(self.model, TellsSimilarItems):
            shared = self._trained(_ROWS)
            before, first = contents(shared), self.model.similar(shared, 3)
            assert first.shape == (len(_ROWS.items),)
            assert first.dtype == np.float32
            assert np.isfinite(first).all()
            kept = first.tobytes()
            first[:] = 0  # a returned array belongs to the caller
            self.model.similar(shared, 5)
            for other in (self.model, self.made_anew()):
                assert isinstance(other, TellsSimilarItems)
                assert other.similar(shared, 3).tobytes() == kept
            assert contents(shared) == before

    def test_reasons_add_up_to_the_score(self) -> None:
        """What the user's own items add sums to the score; an item adds nothing to itself (`Explains`)."""
        if isinstance(self.model, Explains):
            prepared, owned = prepared_by(self.model, self._trained(_ROWS)), _OTHERS.items_at(3)
            found = self.model.score(prepared, {}, owned)
            for item in range(len(_ROWS.items)):
                reasons = self.model.reasons(prepared, owned, item)
                assert reasons.shape == owned.shape
                assert reasons.dtype == np.float32
                assert np.isclose(reasons.sum(), found[item], rtol=1e-4, atol=1e-5)
                assert not reasons[owned == item].any()

    def _trained(self, rows: Interactions) -> Arrays:
        return self.model.train(self.model.start(rows.items, 0), stage(rows, scale=_SCALE), Effort()).shared

    def _scores_of_others(self, shared: Arrays) -> NDArray[np.float32]:
        """Return the scores, under shared parameters, of people whose data never change."""
        prepared = prepared_by(self.model, shared)
        rows = self.model.represent(prepared, _AT, Effort())
        people = range(len(_OTHERS.users))
        return np.stack([self.model.score(prepared, row_at(rows, user), _OTHERS.items_at(user)) for user in people])

    def _otherwise(self, name: str) -> Model:
        """Return the model with another value of one setting."""
        settings = self.model.settings
        given = [self.other_values[name]] if name in self.other_values else []
        annotation = type(settings).model_fields[name].annotation
        for value in (*given, *_other_values(getattr(settings, name), annotation)):
            try:
                other = type(self.model)(**{**settings.model_dump(), name: value})
            except WrongSetting:
                continue
            if other.settings != settings:
                return other
        raise AssertionError(f"the suite finds no other value of the setting {name!r}: give one in its other_values")


def _judged(model: Model, prepared: Any) -> tuple[object, ...]:  # noqa: ANN401 - the model's own
    """Return the bytes of some people's rows and scores under prepared parameters."""
    rows = model.represent(prepared, _AT, Effort())
    scores = [model.score(prepared, row_at(rows, user), _OTHERS.items_at(user)).tobytes() for user in range(5)]
    return bytes_by_user(rows, _OTHERS.users), scores


def _other_values(value: Any, annotation: Any) -> Iterator[Any]:  # noqa: ANN401 - settings of many types
    """Yield possible other values of a setting: another choice, or a nearby number."""
    yield from get_args(annotation)
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value - 1, value * 2, value / 2)
