"""A model of another package that is released again: settings that come and go, and what becomes of workspaces."""

import importlib
import os
import sys

import pyarrow as pa
import pytest

from erasable import Recommender
from erasable.errors import NotReproducible, WorkspaceError

TABLE = pa.table(
    {
        "user": [user for user in range(12) for _ in range(4)],
        "item": [(u * 3 + n) % 7 for u in range(12) for n in range(4)],
    }
)
FIRST = '''
from erasable.models import NMF
from erasable.models._nmf import NMFSettings


class MineSettings(NMFSettings):
    """Settings of one's own."""

    strength: float = 1.0
    """How strong it is."""


class Mine(NMF):
    """A model of one's own."""

    name = "mine"
    settings_class = MineSettings
'''
LONGER = FIRST.replace(
    '    """How strong it is."""\n',
    '    """How strong it is."""\n\n    warmth: float = 0.5\n    """What came later."""\n',
)
RENAMED = FIRST.replace("strength", "power")


@pytest.fixture
def release(tmp_path, monkeypatch):
    """Return what writes another release of the model and imports it, as a new process would."""
    monkeypatch.syspath_prepend(tmp_path)

    def release(source):
        (tmp_path / "mine_released.py").write_text(source)
        sys.modules.pop("mine_released", None)
        importlib.invalidate_caches()
        return importlib.import_module("mine_released").Mine

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield release
    sys.modules.pop("mine_released", None)


@pytest.fixture
def shop(release, tmp_path):
    """A workspace that the first release has made."""
    model = release(FIRST)(epochs=3, batch=8, strength=2.0)
    Recommender(model, groups=3).fit(TABLE).save(tmp_path / "shop")
    return tmp_path / "shop"


def names_in(shop):
    return sorted(os.listdir(shop / "checkpoints"))


def test_a_setting_that_is_added_renames_nothing_on_the_whole_walk(shop, release, tmp_path):
    before, first = names_in(shop), (shop / "config.json").read_bytes()
    again = Recommender.load(shop, model=release(LONGER))
    assert again.status()["model"] == "mine"
    with pytest.raises(NotReproducible, match="the source files of the model have changed"):
        again.forget(3)
    assert again.upgrade().adopted == 3
    assert [name[:64] for name in names_in(shop)] == [name[:64] for name in before]
    rerun = again.forget(11).stages_rerun
    assert 0 < rerun < 3
    kept = {name[:64] for name in names_in(shop)} & {name[:64] for name in before}
    assert len(kept) == 3 - rerun
    assert again.verify().identical
    assert Recommender.load(shop, model=release(LONGER)).verify().identical
    assert (shop / "config.json").read_bytes() == first


def test_a_setting_that_is_renamed_is_named_and_every_remedy_works(shop, release, tmp_path):
    later = release(RENAMED)
    with pytest.raises(WorkspaceError) as raised:
        Recommender.load(shop, model=later)
    assert "names the setting strength = 2.0, which this version of the model 'mine' does not have" in str(raised.value)
    assert (
        "install the version that wrote it, pass it with Recommender.load(folder, model=…), or learn again from "
        "the data into another folder" in str(raised.value)
    )
    Recommender(later(epochs=3, batch=8, power=2.0), groups=3).fit(TABLE).save(tmp_path / "other")
    assert Recommender.load(tmp_path / "other", model=later).verify().identical
    loaded = Recommender.load(shop, model=release(FIRST))
    loaded.forget(3)
    assert loaded.verify().identical
