"""Learn, as the library and the service call it."""

import pytest

from erasable.chain import Config
from erasable.chain.plan import samples_of
from erasable.errors import DataRefused, Refused, WorkspaceError
from erasable.operations import DiskStorage, Inputs, Work, learn
from kit.fitting import fitting


def test_it_counts_what_it_learned(table, config, tmp_path):
    learned = learn(table, tmp_path / "shop", config)
    assert (learned.users, learned.items, learned.interactions, learned.groups) == (6, 6, 21, 3)
    assert learned.rating_scale == "1–5"
    assert 0 < learned.held_out < 21
    assert learned.seconds > 0


def test_the_same_input_gives_the_same_bytes_on_any_number_of_threads(table, config, tmp_path):
    found = []
    for threads in (1, 2, 3):
        learn(table, tmp_path / str(threads), config, work=Work(threads))
        paths = (tmp_path / str(threads)).rglob("*.safetensors")
        found.append({path.name: path.read_bytes() for path in paths})
    assert len(found[0]) == 3
    assert found[0] == found[1] == found[2]


def test_two_recommenders_share_neither_key_nor_salt(table, config, tmp_path):
    stamps, keys = [], []
    for name in ("one", "other"):
        learn(table, tmp_path / name, config)
        with DiskStorage(tmp_path / name).reading() as session:
            stamps.append(session.stamp)
            keys.append(session.documents().key)
        assert (tmp_path / name / "signing-key.txt").stat().st_mode & 0o777 == 0o600
    assert [stamp.version for stamp in stamps] == [1, 1]
    assert stamps[0].salt != stamps[1].salt
    assert keys[0] != keys[1]


def test_a_group_may_be_empty(as_table, tmp_path):
    table = as_table({"ann": {"a": 1}, "bob": {"b": 1}})
    config = Config(model="nmf", grouping="independent", groups=9, epochs=9)
    assert learn(table, tmp_path / "shop", config).groups == 9


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"model": "ease", "neighbours": "all", "regularisation": 1e-60}, Refused),
        ({"groups": 7}, Refused),
        ({"rating_scale": (2, 3)}, DataRefused),
    ],
)
def test_what_is_refused_leaves_no_folder(table, tmp_path, settings, error):
    with pytest.raises(error):
        learn(table, tmp_path / "deep" / "shop", Config(**fitting({"groups": 2, **settings})))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_is_refused_before_the_input_is_read(table, config, learned):
    with pytest.raises(WorkspaceError, match="holds a workspace already"):
        learn("no such file", learned, config)


def test_samples_are_positives_and_negatives_in_every_epoch_of_every_stage(as_table, tmp_path):
    table = as_table({"ann": {"a": 1}, "bob": {"b": 1, "c": 1}})
    (tmp_path / "items").write_text("a\nb\nc\n")
    inputs = Inputs(catalogue=tmp_path / "items")
    learn(table, tmp_path / "shop", Config(model="nmf", groups=2, epochs=5, negatives=3), inputs)
    with DiskStorage(tmp_path / "shop").reading() as session:
        # Three interactions with three negatives each; the two groups share five epochs, rounded up.
        assert samples_of(session.state().dataset) == 3 * 4 * 3


@pytest.mark.parametrize(("regularisation", "said"), [(20.0, True), (0.5, False)])
def test_factors_that_vanish_are_told(table, tmp_path, reporter, regularisation, said):
    config = Config(model="als", regularisation=regularisation)
    learn(table, tmp_path / "shop", config, work=Work(1, reporter))
    assert any("give a smaller regularisation" in note for note in reporter.notes) == said


def test_nobody_who_shapes_anything_is_told(table, tmp_path, reporter):
    learn(table, tmp_path / "shop", Config(model="als", anchors=1e-9), work=Work(1, reporter))
    assert any("give a larger anchors" in note for note in reporter.notes)
