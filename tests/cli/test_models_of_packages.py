"""Models that other packages register: a command imports the one that is named, and what needs none works without."""

import sys

import pytest

from kit.packages import installed

BROKEN = """
from pathlib import Path
Path(__file__).with_name("imported").touch()
raise SystemExit("this package is broken")
"""
FOREIGN = '''
from typing import ClassVar
from pydantic import Field
from erasable.models import ALS, Settings
from erasable.models._als import ALSSettings


class OwnSettings(ALSSettings):
    """Settings with a type of their own."""

    factors: int = Field(4, ge=1, le=9)
    """How many factors there are."""
    regularisation: int = 3
    """A whole number here."""
    softness: float = 0.5
    """How soft it is."""


class Foreign(ALS):
    """Another package's model."""
    name: ClassVar[str] = "foreign"
    settings_class: ClassVar[type[Settings]] = OwnSettings
'''


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """A folder with a package that can't be imported, seen by every process."""
    site = tmp_path / "site"
    site.mkdir()
    installed(site, "broken_model", BROKEN, models="broken=Broken", groupings="torn=torn")
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.syspath_prepend(site)
    yield site
    sys.modules.pop("broken_model", None)


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """A folder with a package that registers a model."""
    site = tmp_path / "foreign-site"
    site.mkdir()
    installed(site, "foreign_model", FOREIGN, models="foreign=Foreign")
    monkeypatch.syspath_prepend(site)
    yield site
    sys.modules.pop("foreign_model", None)


@pytest.mark.full
def test_a_broken_package_is_neither_imported_nor_in_the_way(broken, run, run_apart, ratings_file, tmp_path):
    assert run("learn", ratings_file, "--into", tmp_path / "shop").code == 0
    for words in (("--help",), ("status", tmp_path / "shop"), ("recommend", tmp_path / "shop", "--user", "ann")):
        found = run_apart(*words)
        assert (found.code, found.err) == (0, ""), words
    for words in (("scan", "--user", "zoe"), ("verify",), ("forget", "--user", "ann")):
        assert run(words[0], tmp_path / "shop", *words[1:]).code == 0
    assert not (broken / "imported").exists()


@pytest.mark.parametrize(
    ("option", "what"), [(("--model", "broken"), "model 'broken'"), (("--model=broken",), "'broken'")]
)
def test_a_broken_package_that_is_named_is_told_in_one_line(broken, run, ratings_file, tmp_path, option, what):
    found = run("learn", ratings_file, "--into", tmp_path / "shop", *option)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert what in found.err
    assert "can't be loaded (SystemExit: this package is broken): fix or remove broken_model, which" in found.err
    assert not (tmp_path / "shop").exists()


def test_a_broken_grouping_that_is_named_is_told_in_one_line(broken, run, ratings_file, tmp_path):
    found = run("learn", ratings_file, "--into", tmp_path / "shop", "--model", "nmf", "--grouping", "torn")
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "the grouping 'torn' can't be loaded (SystemExit" in found.err
    assert (broken / "imported").exists()


def test_help_tells_of_a_broken_package_and_shows_the_others(broken, foreign, run):
    found = run("learn", "--help")
    assert found.code == 0
    assert "--softness" in found.out
    assert "the model 'broken' can't be loaded" in found.err


def test_a_setting_has_the_type_that_it_has_in_the_model_that_is_named(foreign, run, ratings_file, tmp_path):
    soft = ("--model", "foreign", "--softness", "0.25")
    found = run("learn", ratings_file, "--into", tmp_path / "one", *soft, "--regularisation", "2.5")
    assert found.code == 2
    assert "'--regularisation': Input should be a valid integer" in found.err
    assert run("learn", ratings_file, "--into", tmp_path / "one", *soft, "--regularisation", "2").code == 0
    assert run("learn", ratings_file, "--into", tmp_path / "two", "--regularisation", "2.5").code == 0
    assert '"softness": 0.25' in (tmp_path / "one" / "config.json").read_text()


def test_a_file_of_settings_may_name_the_model(foreign, run, ratings_file, tmp_path):
    (tmp_path / "c.toml").write_text('model = "foreign"\nregularisation = 2\n')
    words = ("learn", ratings_file, "--config", tmp_path / "c.toml", "--into", tmp_path / "shop", "--softness", "0.75")
    assert run(*words).code == 0
    assert '"softness": 0.75' in (tmp_path / "shop" / "config.json").read_text()
    (tmp_path / "c.toml").write_text('model = "foreign"\nsoft = 2\n')
    found = run("learn", ratings_file, "--config", tmp_path / "c.toml", "--into", tmp_path / "other")
    assert "there is no setting 'soft': did you mean 'softness'? The settings are" in found.err
    assert "softness" in found.err


def test_an_option_of_a_model_that_is_not_named_is_unknown(foreign, run, ratings_file, tmp_path):
    assert run("learn", ratings_file, "--into", tmp_path / "shop", "--softness", "0.75").code == 2
    assert "foreign_model" not in sys.modules


class TestAWorkspaceWhoseModelIsMissing:
    @pytest.fixture
    def shop(self, foreign, run, ratings_file, tmp_path, monkeypatch):
        """A workspace whose package was uninstalled since."""
        assert run("learn", ratings_file, "--into", tmp_path / "shop", "--model", "foreign").code == 0
        assert run("forget", tmp_path / "shop", "--user", "dan").code == 0
        monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(foreign)])
        sys.modules.pop("foreign_model", None)
        return tmp_path / "shop"

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("status",), "foreign"),
            (("show", "--user", "ann"), "user ann: 3 interactions"),
            (("groups",), "learned all at once"),
            (("scan", "--user", "dan"), "nothing of the person was found"),
            (("scan", "--user", "softness"), "nothing of the person was found"),
        ],
    )
    def test_is_looked_at(self, shop, run, words, said):
        found = run(words[0], shop, *words[1:])
        assert (found.code, found.err) == (0, "")
        assert said in found.out

    @pytest.mark.parametrize(
        "words",
        [
            ("recommend", "--user", "ann"),
            ("plan", "--user", "ann"),
            ("forget", "--user", "ann"),
            ("verify",),
            ("upgrade",),
            ("doctor",),
        ],
    )
    def test_says_what_is_missing_to_whatever_needs_it(self, shop, run, words):
        before = {path: path.read_bytes() for path in shop.rglob("*") if path.is_file()}
        found = run(words[0], shop, *words[1:])
        assert found.code != 0
        assert "this workspace's model is 'foreign', which no installed package brings (entry point gr" in found.err
        assert "install it, or open the workspace with Recommender.load(…, model=YourClass)" in found.err
        assert {path: path.read_bytes() for path in shop.rglob("*") if path.is_file()} == before
