"""The file of settings: structured, numbered, read by name; what a newer version writes beside them is kept."""

import json
import sys
from importlib.metadata import version

import pyarrow as pa
import pytest
from pydantic import Field

from erasable import Recommender
from erasable.chain import Config, Laser, environment_for
from erasable.data import Ids, RatingScale, SyntheticSettings, synthesise
from erasable.errors import NewerDocument, Refused, UnknownModel, WorkspaceError
from erasable.grouping import GroupingSettings, assign_groups
from erasable.models import ALS, EASE, NMF
from erasable.models._als import ALSSettings
from erasable.models.registry import make_model
from erasable.workspace._settings_file import config_of_0_1, decode_settings, encode_settings

TABLE = pa.table({"user": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "c", "b"]})
FOREIGN = '''
from typing import ClassVar
from erasable.models import ALS

class Mine(ALS):
    """A model of one's own."""
    name: ClassVar[str] = "mine"
'''


def read(document: dict) -> Config:
    return decode_settings(json.dumps(document).encode(), "config.json")


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Return a model that lies in a file and that nobody registers."""
    (tmp_path / "mine.py").write_text(FOREIGN)
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("mine").Mine
    sys.modules.pop("mine", None)


@pytest.mark.parametrize(
    "config",
    [Config(), Config(model=NMF(epochs=3), strategy=Laser(groups=2), rating_scale=(1, 5)), Config(model="als")],
)
def test_settings_are_read_as_they_were_written(config):
    assert decode_settings(encode_settings(config), "config.json") == config


def test_it_says_what_belongs_to_whom():
    document = json.loads(encode_settings(Config(model="als", factors=8, seed=3)))
    assert document["format"] == 2
    assert document["model"] == {
        "name": "als",
        "revision": 2,
        "settings": {"factors": 8, "regularisation": 20.0, "epochs": 20},
    }
    assert document["strategy"] == {"name": "retrain", "settings": {"policy": "fixed"}}
    assert document["settings"]["seed"] == 3


def test_what_a_newer_version_writes_beside_the_settings_is_kept():
    document = json.loads(encode_settings(Config(model="als", factors=8)))
    document["note"], document["model"]["origin"] = {"a": 1}, "tuned"
    again = json.loads(encode_settings(read(document).changed(seed=4)))
    assert (again["note"], again["model"]["origin"], again["settings"]["seed"]) == ({"a": 1}, "tuned", 4)


def test_a_setting_that_decides_what_is_learned_and_is_not_known_is_refused():
    document = json.loads(encode_settings(Config()))
    document["settings"]["alpha"] = 3
    with pytest.raises(WorkspaceError, match="settings that this version of erasable does not know"):
        read(document)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"alpha": 3}, "names the setting alpha = 3, which this version of the model 'als' does not have: use the ver"),
        ({"beta": 1, "alpha": "x"}, 'names the setting alpha = "x", beta = 1, which this version of the model'),
        ({"factors": 0}, "has a setting that this version of the model 'als' refuses (wrong setting `factors`: "),
    ],
)
def test_a_setting_that_a_later_release_of_a_model_removes_or_refuses_is_named(settings, said):
    document = json.loads(encode_settings(Config(model="als")))
    document["model"]["settings"] |= settings
    with pytest.raises(WorkspaceError) as raised:
        read(document)
    assert said in str(raised.value)
    assert "use the version of erasable that wrote it, or learn again from the data into another folder" in str(
        raised.value
    )


def test_another_format_is_refused():
    with pytest.raises(NewerDocument, match="has the format 9 and this version of erasable reads up to 2"):
        read({**json.loads(encode_settings(Config())), "format": 9})


def test_a_model_that_is_not_registered_is_neither_imported_nor_computed_with():
    document = json.loads(encode_settings(Config(model="als", factors=7)))
    document["model"]["name"] = "antigravity"
    config = read(document)
    assert (config.model, config.rows, config.flat()["factors"]) == ("antigravity", "solved", 7)
    said = r"model is 'antigravity', which no installed package brings .*erasable.models\): install it, or .*model="
    for needing in (make_model, encode_settings, environment_for):
        with pytest.raises(UnknownModel, match=said):
            needing(config)
    with pytest.raises(UnknownModel, match=said):
        config.learner.start(Ids.of(["a"]), 0)
    assert "antigravity" not in sys.modules


def test_a_checkpoint_of_an_earlier_revision_stays_what_it_is():
    document = json.loads(encode_settings(Config()))
    document["model"]["revision"] = 0
    config = read(document)
    assert (config.revision, config.stage_facts()["revision"]) == (0, 0)


class TestAModelOfOnesOwn:
    def test_is_saved_and_opened_with_its_object(self, mine, tmp_path):
        recommender = Recommender(mine(factors=4)).fit(TABLE)
        recommender.save(tmp_path / "shop")
        again = Recommender.load(tmp_path / "shop", model=mine())
        assert again.forget(2).stages_rerun == 1
        assert again.verify().identical
        assert again.status()["model"] == "mine"

    def test_is_not_opened_without_it(self, mine, tmp_path):
        Recommender(mine(factors=4)).fit(TABLE).save(tmp_path / "shop")
        with pytest.raises(Refused, match="this workspace's model is 'mine', which no installed package brings"):
            Recommender.load(tmp_path / "shop")

    def test_without_a_source_file_lives_in_memory_only(self, tmp_path):
        typed: dict = {}
        exec(FOREIGN, typed)
        recommender = Recommender(typed["Mine"](factors=4)).fit(TABLE)
        assert recommender.verify().identical
        with pytest.raises(Refused, match="the model 'mine' has no source file"):
            recommender.save(tmp_path / "shop")
        assert not (tmp_path / "shop").exists()
        assert recommender.recommend([1], k=1).num_rows == 1


def test_the_learner_is_that_of_the_name():
    assert isinstance(read(json.loads(encode_settings(Config(model="als")))).learner, ALS)
    assert isinstance(read(json.loads(encode_settings(Config()))).learner, EASE)


def test_a_setting_that_a_later_release_adds_renames_nothing_and_stays_unnamed(monkeypatch):
    class Later(ALSSettings):
        alpha: float = Field(4.0, gt=0)
        """How much a rating weighs."""

    document = json.loads(encode_settings(Config(model="als", factors=8)))
    facts = Config(model="als", factors=8).stage_facts()
    monkeypatch.setattr(ALS, "settings_class", Later)
    config = read(document)
    assert config.learner.settings.alpha == 4.0
    assert config.stage_facts() == config.changed(seed=3).stage_facts() == facts
    assert json.loads(encode_settings(config)) == document
    chosen = config.changed(alpha=2.0)
    assert (chosen.stage_facts()["settings"]["alpha"], read(json.loads(encode_settings(chosen)))) == (2.0, chosen)
    assert Config(model="als", factors=8).stage_facts() != facts


class TestNeighboursThatEarlierReleasesDidNotHave:
    """A workspace that says nothing of neighbours was learned with all of them, whatever is usual now."""

    @pytest.fixture
    def document(self):
        document = json.loads(encode_settings(Config(model="ease", neighbours="all", regularisation=500.0)))
        del document["model"]["settings"]["neighbours"]
        return document

    def test_all_of_them_are_read(self, document):
        assert Config(model="ease").setting("neighbours") == 200
        assert read(document).setting("neighbours") == "all"

    def test_checkpoints_keep_their_names(self, document):
        assert read(document).stage_facts()["settings"] == {"regularisation": 500.0}

    def test_it_is_written_as_it_was(self, document):
        again = json.loads(encode_settings(read(document).changed(seed=4)))
        assert again["model"] == document["model"]
        assert read(again).setting("neighbours") == "all"

    def test_another_number_can_be_given(self, document):
        changed = read(document).changed(neighbours=50)
        assert read(json.loads(encode_settings(changed))).setting("neighbours") == 50
        assert changed.stage_facts()["settings"]["neighbours"] == 50


class TestVectorsThatEarlierReleasesDidNotName:
    """A workspace that says nothing of who learned its users' vectors was grouped by those of gensim."""

    @pytest.fixture(params=["laser", "sisa"])
    def document(self, request):
        config = Config(model="nmf", strategy=request.param, grouping="cbkm", policy="regroup")
        document = json.loads(encode_settings(config))
        assert document["strategy"]["settings"].pop("vectors") == "erasable"
        return document

    def test_gensim_is_read_and_counts_where_groups_are_computed_again(self, document):
        assert read(document).dividing.vectors == "gensim"
        assert environment_for(read(document))["gensim"] == version("gensim")

    def test_it_stays_whatever_else_changes(self, document):
        again = read(json.loads(encode_settings(read(document).changed(seed=4))))
        assert (again.seed, again.dividing.vectors) == (4, "gensim")
        assert read(document).of_this_revision().dividing.vectors == "gensim"

    def test_users_are_grouped_as_they_were(self, document):
        rows = synthesise(SyntheticSettings(users=60, items=40, groups=3, per_user=6)).interactions
        own, earlier = Config(model="nmf", grouping="cbkm").dividing, read(document).dividing
        by_gensim = GroupingSettings(grouping="cbkm", vectors="gensim")
        found = [assign_groups(rows, RatingScale(1, 1), one, 0).positions.tolist() for one in (earlier, by_gensim, own)]
        assert found[0] == found[1] != found[2]

    def test_without_gensim_the_rest_of_a_workspace_is_read(self, document, monkeypatch):
        monkeypatch.setattr("erasable.grouping.registry.find_spec", lambda name: None)
        document["strategy"]["settings"]["policy"] = "fixed"
        assert "gensim" not in environment_for(read(document))

    def test_groups_that_need_none_name_none(self, document):
        document["strategy"]["settings"]["grouping"] = "random"
        assert read(document).dividing.vectors is None

    def test_0_1_had_those_of_gensim(self):
        flat = {**Config(model="nmf", grouping="cbkm-near").flat(), "neighbours": 5}
        del flat["vectors"]
        assert config_of_0_1(flat, "config.json").dividing.vectors == "gensim"
