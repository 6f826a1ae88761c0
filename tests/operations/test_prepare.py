"""From an input to knowledge: scale, filter, catalogue, holdout and groups, decided here or elsewhere."""

import pytest

from erasable.data import RatingScale
from erasable.errors import DataRefused, WrongUse
from erasable.operations import Inputs, learn
from erasable.operations.prepare import NO_INPUTS, prepare
from erasable.operations.work import QUIET_WORK
from erasable.training import Config


@pytest.fixture
def prepared(table):
    """Return the knowledge for some settings."""

    def call(source=table, inputs=NO_INPUTS, **settings):
        return prepare(source, Config(**{"groups": 2, **settings}), inputs, QUIET_WORK)

    return call


def users_of(knowledge):
    return [group.users.texts() for group in knowledge.groups]


class TestDecidedHere:
    def test_everyone_is_in_one_group_and_every_interaction_is_there(self, prepared, ratings):
        knowledge = prepared(holdout=0.3)
        assert sorted(user for group in users_of(knowledge) for user in group) == sorted(ratings)
        assert (knowledge.users, knowledge.interactions) == (6, 21)
        assert len(knowledge.held_out) > 0

    def test_the_scale_is_recognised_or_as_given(self, prepared):
        assert prepared().scale == RatingScale(1, 5)
        assert prepared(rating_scale=(0, 6)).scale == RatingScale(0, 6)

    def test_the_catalogue_is_what_the_filter_left(self, prepared):
        knowledge = prepared(min_interactions=2)
        assert knowledge.catalogue.items.texts() == ["a", "b", "c", "d", "e"]
        assert knowledge.kept_items == frozenset("abcde")
        assert not knowledge.catalogue.declared
        assert prepared().kept_items is None

    def test_the_data_are_named_when_they_do_not_fit(self, prepared, as_table, tmp_path):
        table = as_table({"ann": {"a": 1}, "bob": {"b": 99}})
        with pytest.raises(DataRefused, match="the table: ratings from 1 to 99 fit no known scale"):
            prepared(table)
        path = tmp_path / "r.csv"
        path.write_text("user_id,item_id,rating\nann,a,1\nbob,b,9\n")
        for source in (path, str(path)):
            with pytest.raises(DataRefused, match=r"r\.csv, row 2: rating 9 lies outside the scale 1–5"):
                prepared(source, rating_scale=(1, 5))


class TestDecidedElsewhere:
    @pytest.fixture
    def given(self, table, tmp_path):
        """A workspace with a scale, a filter, a holdout and groups of its own."""
        settings = {"rating_scale": (0, 6), "min_interactions": 2, "grouping": "random", "order": "count"}
        learn(table, tmp_path / "given", Config(groups=3, epochs=1, seed=5, **settings))
        return tmp_path / "given"

    def test_a_workspace_brings_groups_their_order_and_number_scale_and_filter(
        self, prepared, given, as_table, ratings
    ):
        original = prepared(inputs=Inputs(groups_from=given), min_interactions=2)
        assert len(original.groups) == 3
        assert original.scale == RatingScale(0, 6)
        assert (original.config.grouping, original.config.order, original.config.groups) == ("random", "count", 3)
        # Among those left, only one has c and only one has e: computed anew, the filter would drop both.
        fewer = {user: ratings[user] for user in ("ann", "bob", "fay")}
        without = prepared(as_table(fewer), Inputs(groups_from=given), min_interactions=2)
        assert users_of(without) == [[u for u in group if u in fewer] for group in users_of(original)]
        assert without.kept_items == original.kept_items
        assert without.interactions == sum(map(len, fewer.values()))

    def test_a_given_scale_yields_to_one_that_is_declared(self, prepared, given):
        inputs = Inputs(groups_from=given, catalogue=given)
        assert prepared(inputs=inputs, rating_scale=(0, 9), min_interactions=2).scale == RatingScale(0, 9)

    def test_a_workspace_brings_its_catalogue_and_scale(self, prepared, given, as_table):
        knowledge = prepared(as_table({"ann": {"a": 1}, "bob": {"b": 1}}), Inputs(catalogue=given))
        assert knowledge.catalogue.items.texts() == ["a", "b", "c", "d", "e"]
        assert knowledge.scale == RatingScale(0, 6)
        assert len(knowledge.groups) == 2

    def test_a_file_brings_a_declared_catalogue(self, prepared, tmp_path):
        (tmp_path / "items").write_text("f\ne\nd\nc\nb\na\nz\n")
        catalogue = prepared(inputs=Inputs(catalogue=tmp_path / "items")).catalogue
        assert catalogue.items.texts() == ["a", "b", "c", "d", "e", "f", "z"]
        assert catalogue.declared

    def test_a_csv_brings_positions_and_is_recorded_as_given(self, prepared, tmp_path):
        (tmp_path / "groups.csv").write_text(
            "user_id,group,position\nann,0,2\nbob,0,2\ncat,1,0\ndan,1,0\neve,1,0\nfay,1,0\nzoe,1,3\n"
        )
        knowledge = prepared(inputs=Inputs(groups_from=tmp_path / "groups.csv"), groups=7, order="count")
        assert users_of(knowledge) == [["cat", "dan", "eve", "fay"], [], ["ann", "bob"], []]
        assert (knowledge.config.grouping, knowledge.config.order) == ("given", "number")

    def test_groups_make_no_sense_for_a_strategy_that_has_one(self, prepared, given):
        with pytest.raises(WrongUse, match="--strategy retrain trains everyone in one group"):
            prepared(inputs=Inputs(groups_from=given), strategy="retrain")

    def test_a_workspace_with_one_group_serves_that_strategy(self, prepared, table, tmp_path):
        learn(table, tmp_path / "one", Config(strategy="retrain", epochs=1, rating_scale=(0, 6), min_interactions=2))
        knowledge = prepared(inputs=Inputs(groups_from=tmp_path / "one"), strategy="retrain", min_interactions=2)
        assert knowledge.scale == RatingScale(0, 6)
        assert len(knowledge.groups) == 1
