"""From an input to dataset: scale, filter, catalogue, holdout and groups, decided here or not; who is kept out."""

from dataclasses import replace

import pytest

from erasable.chain import Config
from erasable.data import RatingScale
from erasable.errors import DataRefused, ListUnusable, WrongUse
from erasable.operations import DiskStorage, Inputs, Work, learn
from erasable.operations.prepare import NO_INPUTS, prepare
from erasable.operations.work import QUIET_WORK
from erasable.proof.do_not_learn import NONE_LISTED, DoNotLearnFiles, DoNotLearnList, add_requests
from erasable.requests import Request
from kit.fitting import fitting


@pytest.fixture
def prepared(table):
    """Return the dataset for some settings."""

    def call(source=table, inputs=NO_INPUTS, **settings):
        config = Config(**fitting({"groups": 2, **settings}))
        return prepare(source, config, inputs, QUIET_WORK, opened(inputs)).dataset

    return call


def opened(inputs):
    return inputs.do_not_learn and DoNotLearnList.open(inputs.do_not_learn)


def users_of(dataset):
    return [group.users.texts() for group in dataset.groups]


def content(folder):
    """Return the checkpoints of a workspace by name, byte for byte, and digests of its data."""
    with DiskStorage(folder).reading() as session:
        dataset = session.state().dataset
        parts = [part.digest() for part in (*dataset.groups, dataset.held_out)]
    checkpoints = {path.name: path.read_bytes() for path in folder.rglob("*.safetensors")}
    assert len(checkpoints) == len(dataset.groups)
    return checkpoints, parts, dataset.items.texts()


class TestDecidedHere:
    def test_everyone_is_in_one_group_and_every_interaction_is_there(self, prepared, ratings):
        dataset = prepared(holdout=0.3)
        assert sorted(user for group in users_of(dataset) for user in group) == sorted(ratings)
        assert (dataset.users, dataset.interactions) == (6, 21)
        assert len(dataset.held_out) > 0

    def test_the_scale_is_recognised_or_as_given(self, prepared):
        assert prepared().scale == RatingScale(1, 5)
        assert prepared(rating_scale=(0, 6)).scale == RatingScale(0, 6)

    def test_the_catalogue_is_what_the_filter_left(self, prepared):
        dataset = prepared(min_interactions=2)
        assert dataset.items.texts() == ["a", "b", "c", "d", "e"]
        assert dataset.kept_items == frozenset("abcde")
        assert dataset.catalogue is None
        assert prepared().kept_items is None

    def test_the_data_are_named_when_they_do_not_fit(self, prepared, as_table, tmp_path):
        table = as_table({"ann": {"a": 1}, "bob": {"b": 99}})
        with pytest.raises(DataRefused, match="the table: ratings from 1 to 99 fit no known scale"):
            prepared(table)
        path = tmp_path / "r.csv"
        path.write_text("user_id,item_id,rating\nann,a,1\nbob,b,9\n")
        for source in (path, str(path)):
            with pytest.raises(DataRefused, match=r"r\.csv, line 3: rating 9 lies outside the scale 1–5"):
                prepared(source, rating_scale=(1, 5))


class TestDecidedElsewhere:
    @pytest.fixture
    def given(self, table, tmp_path):
        """A workspace with a scale, a filter, a holdout and groups of its own."""
        settings = {"rating_scale": (0, 6), "min_interactions": 2, "grouping": "random", "order": "count"}
        learn(table, tmp_path / "given", Config(model="nmf", groups=3, epochs=1, seed=5, **settings))
        return tmp_path / "given"

    @pytest.fixture
    def declaring(self, table, tmp_path):
        """A workspace with a declared catalogue and a scale."""
        (tmp_path / "declared").write_text("\n".join("abcdef"))
        config = Config(model="ease", rating_scale=(0, 6))
        learn(table, tmp_path / "declaring", config, Inputs(catalogue=tmp_path / "declared"))
        return tmp_path / "declaring"

    def test_a_workspace_whose_items_follow_the_people_declares_none(self, prepared, given, as_table):
        rows = as_table({"ann": {"a": 1}, "bob": {"b": 1}})
        with pytest.raises(WrongUse, match=r"has no declared catalogue: .* is personal.*give catalogue=FILE"):
            prepared(rows, Inputs(catalogue=given))

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
        inputs = Inputs(groups_from=given)
        assert prepared(inputs=inputs, rating_scale=(0, 9), min_interactions=2).scale == RatingScale(0, 9)

    def test_a_workspace_brings_its_catalogue_and_scale(self, prepared, declaring, as_table):
        dataset = prepared(as_table({"ann": {"a": 1}, "bob": {"b": 1}}), Inputs(catalogue=declaring))
        assert dataset.items.texts() == ["a", "b", "c", "d", "e", "f"]
        assert dataset.scale == RatingScale(0, 6)
        assert len(dataset.groups) == 2

    def test_a_file_brings_a_declared_catalogue(self, prepared, tmp_path):
        (tmp_path / "items").write_text("f\ne\nd\nc\nb\na\nz\n")
        catalogue = prepared(inputs=Inputs(catalogue=tmp_path / "items")).catalogue
        assert catalogue.items.texts() == ["a", "b", "c", "d", "e", "f", "z"]
        assert catalogue.declared

    def test_a_csv_brings_positions_and_is_recorded_as_given(self, prepared, tmp_path):
        (tmp_path / "groups.csv").write_text(
            "user_id,group,position\nann,0,2\nbob,0,2\ncat,1,0\ndan,1,0\neve,1,0\nfay,1,0\nzoe,1,3\n"
        )
        dataset = prepared(inputs=Inputs(groups_from=tmp_path / "groups.csv"), groups=7, order="count")
        assert users_of(dataset) == [["cat", "dan", "eve", "fay"], [], ["ann", "bob"], []]
        assert (dataset.config.grouping, dataset.config.order) == ("given", "number")

    def test_groups_make_no_sense_for_a_strategy_that_has_one(self, prepared, given):
        with pytest.raises(WrongUse, match="strategy='retrain' trains everyone in one group"):
            prepared(inputs=Inputs(groups_from=given), strategy="retrain")
        with pytest.raises(WrongUse, match=r"als has one group, and .* has several: give model='nmf', or leave out"):
            prepared(inputs=Inputs(groups_from=given), model="als")

    def test_a_workspace_with_one_group_serves_that_strategy(self, prepared, table, tmp_path):
        learn(
            table,
            tmp_path / "one",
            Config(model="nmf", strategy="retrain", epochs=1, rating_scale=(0, 6), min_interactions=2),
        )
        dataset = prepared(inputs=Inputs(groups_from=tmp_path / "one"), strategy="retrain", min_interactions=2)
        assert dataset.scale == RatingScale(0, 6)
        assert len(dataset.groups) == 1


class TestSuppressed:
    @pytest.fixture
    def erased(self, tmp_path):
        """Put requests on a do-not-learn list, which is named in what comes back."""

        def call(*requests):
            for folder in ("lists", "keys"):
                (tmp_path / folder).mkdir(exist_ok=True)
            list_files = DoNotLearnFiles(tmp_path / "lists" / "erased.json", tmp_path / "keys" / "erased.key")
            add_requests(list_files, requests)
            return Inputs(do_not_learn=list_files)

        return call

    def test_a_file_without_them_is_learned_as_ever(self, prepared, erased, table):
        inputs = erased(Request("zoe"), Request("ann", ("f",)))
        assert (
            prepare(table, Config(model="nmf", groups=2), inputs, QUIET_WORK, opened(inputs)).suppressed == NONE_LISTED
        )
        assert [group.digest() for group in prepared(inputs=inputs).groups] == [g.digest() for g in prepared().groups]

    @pytest.mark.parametrize(
        "settings", [{}, {"min_interactions": 2}, {"grouping": "bkm", "order": "easy"}, {"strategy": "retrain"}]
    )
    def test_left_out_means_never_there(self, erased, as_table, ratings, tmp_path, settings):
        # Only zoe has the item z, and the rating 10, which would make the scale another one.
        old = {**ratings, "zoe": {"a": 10, "z": 9}, "ann": {**ratings["ann"], "y": 2}}
        inputs = erased(Request("zoe"), Request("eve"), Request("ann", ("y", "c")))
        left = {user: has for user, has in ratings.items() if user != "eve"}
        left["ann"] = {item: rating for item, rating in left["ann"].items() if item != "c"}
        config = Config(**fitting({"groups": 2, "epochs": 2, "holdout": 0.2, **settings}))
        dropped = learn(as_table(old), tmp_path / "dropped", config, inputs)
        never = learn(as_table(left), tmp_path / "never", config)
        assert (dropped.suppressed, never.suppressed) == (4, 0)
        assert (dropped.rating_scale, dropped.items) == ("1–5", never.items)
        assert content(tmp_path / "dropped") == content(tmp_path / "never")

    def test_it_is_said(self, erased, table, reporter):
        inputs = erased(Request("eve"), Request("ann", ("a",)))
        prepare(table, Config(model="nmf", groups=2), inputs, Work(1, reporter), opened(inputs))
        assert "left out what is on the do-not-learn list (people: 1, single interactions: 1)" in reporter.notes

    def test_nothing_is_said_if_nobody_is_left_out(self, erased, table, reporter):
        inputs = erased(Request("zoe"))
        prepare(table, Config(model="nmf", groups=2), inputs, Work(1, reporter), opened(inputs))
        assert not any("do-not-learn" in note for note in reporter.notes)

    def test_with_given_groups_and_catalogue_they_are_left_out_too(self, prepared, erased, table, tmp_path):
        (tmp_path / "items").write_text("a\nb\nc\nd\ne\n")  # f is not among them; only eve has it
        learn(table, tmp_path / "given", Config(model="nmf", groups=2, epochs=1))
        list_files = erased(Request("eve")).do_not_learn
        inputs = Inputs(groups_from=tmp_path / "given", catalogue=tmp_path / "items", do_not_learn=list_files)
        dataset = prepared(inputs=inputs)
        assert sorted(user for group in users_of(dataset) for user in group) == ["ann", "bob", "cat", "dan", "fay"]
        assert dataset.items.texts() == ["a", "b", "c", "d", "e"]

    @pytest.mark.parametrize(("gone", "left"), [("abcdf", 1), ("abcdef", 0)])
    def test_too_few_that_are_left_are_refused(self, prepared, erased, as_table, gone, left):
        table = as_table({name: {"i": 1} for name in "abcdef"})
        with pytest.raises(
            DataRefused, match=f"the table: without what is on the do-not-learn list, users left: {left}"
        ):
            prepared(table, erased(*map(Request, gone)))

    def test_a_wrong_list_is_refused_before_the_input_is_read(self, erased, tmp_path):
        list_files = erased().do_not_learn
        missing = replace(list_files, list=list_files.list.with_name("typo"))
        with pytest.raises(ListUnusable, match="typo: there is no do-not-learn list"):
            learn("no such file", tmp_path / "shop", Config(), Inputs(do_not_learn=missing))
