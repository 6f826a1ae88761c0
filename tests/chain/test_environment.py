import platform
import re
from dataclasses import replace
from importlib.metadata import version

import pytest

from erasable.chain import Config, environment_for, environment_of, made_elsewhere, numeric_environment
from erasable.chain.tasks import _environment, differences, used_beside
from erasable.errors import UnknownModel, WrongSetting
from erasable.extensions import install_command
from erasable.models import EASE, HELPERS_REVISION
from erasable.models.registry import make_model, source_digest
from kit.handmade import handmade


class _Uses:
    def __init__(self, *uses):
        self.uses = uses


def test_the_machine_is_named_with_its_processor_blas_and_versions():
    environment = numeric_environment()
    assert environment["machine"] == platform.machine()
    assert environment["numba"] == version("numba")
    assert environment["blas"]
    assert environment["processor"]
    assert all(isinstance(value, str) for value in environment.values())


@pytest.mark.parametrize("model", ["als", "ease", "nmf", "dmf"])
def test_what_a_model_of_ours_depends_on_is_the_machine_and_what_it_uses(model):
    here = environment_of(make_model(Config(model=model)))
    names = {"machine", "processor", "libc", "blas", "numpy", "scipy", "numba", "llvmlite"}
    assert here == {name: numeric_environment()[name] for name in names}
    assert here == environment_for(Config(model=model))


def test_a_library_that_a_model_does_not_use_does_not_count():
    of_each = {"machine", "processor", "libc", "source", "helpers"}
    assert set(environment_of(_Uses("blas"))) == {*of_each, "blas", "numpy", "scipy"}
    assert set(environment_of(_Uses("numba"))) == {*of_each, "blas", "numpy", "scipy", "numba", "llvmlite"}


def test_a_model_that_is_not_ours_may_use_another_library_and_add_a_digest_of_its_sources():
    found = environment_of(_Uses("pyarrow"))
    assert found["pyarrow"] == version("pyarrow")
    assert "numba" not in found
    assert found["source"] == source_digest(_Uses("pyarrow")) != ""
    assert "source" not in environment_of(make_model(Config()))


class _Derived(EASE):
    """A model of another package that derives from one of ours."""

    name = "derived"
    revision = 7


def test_a_model_that_is_not_ours_names_the_revisions_of_what_it_takes_from_us(monkeypatch):
    before = environment_of(_Derived())
    assert (before["helpers"], before["ease beneath"]) == (str(HELPERS_REVISION), str(EASE.revision))
    assert not {"helpers", "ease beneath"} & environment_of(EASE()).keys()
    monkeypatch.setattr(EASE, "revision", 9)
    assert differences(before, environment_of(_Derived())) == ["ease beneath is 9 here and was 1"]


def test_groups_count_only_where_they_are_decided_anew():
    def named(**settings):
        return environment_for(Config(model="nmf", **settings)).get("gensim")

    assert named(grouping="cbkm", vectors="gensim", policy="regroup") == version("gensim")
    assert named(grouping="cbkm", vectors="gensim") is None
    assert named(grouping="cbkm", policy="regroup") is None
    assert named(grouping="random", vectors="gensim", policy="regroup") is None


def test_groups_by_our_vectors_depend_on_what_compiles_them():
    beside = used_beside(Config(model="nmf", grouping="cbkm", policy="regroup"))
    assert {"numba", "llvmlite", "numpy"} <= beside.keys()


class TestDifferences:
    here = environment_for(Config())

    def test_of_the_same_environment_are_none(self):
        assert differences(dict(self.here), self.here) == []

    def test_are_each_said_in_words(self):
        there = {**self.here, "processor": "znver9", "abacus": "1"}
        del there["numba"]
        assert differences(there, self.here) == [
            "abacus is absent here and was 1",
            f"numba is {version('numba')} here and was absent",
            f"processor is {self.here['processor']} here and was znver9",
        ]

    @pytest.mark.parametrize("name", ["erasable", "kernels", "gensim"])
    def test_of_what_0_1_recorded_only_what_still_counts_is_compared(self, name):
        assert differences({**numeric_environment(), name: "0.0"}, self.here) == []
        assert differences({**numeric_environment(), "numpy": "0.0"}, self.here) != []

    def test_of_an_environment_that_is_not_known_are_all(self):
        assert len(differences({}, self.here)) == len(self.here)


class TestAChain:
    def made_in(self, *environments):
        state = handmade().state
        links = zip(state.chain, environments, strict=True)
        return replace(state, chain=tuple(replace(link, environment=there) for link, there in links))

    here = environment_for(Config(model="nmf", groups=2))

    def test_of_here_was_made_nowhere_else(self):
        state = self.made_in(self.here, dict(self.here))
        assert not made_elsewhere(state)
        assert state.environment == self.here

    def test_of_several_environments_says_which_and_how(self):
        state = self.made_in(self.here, {**self.here, "numpy": "0.0"})
        found = made_elsewhere(state)
        assert found.places == (1,)
        assert str(found) == f"numpy is {version('numpy')} here and was 0.0"
        assert state.environment == {**self.here, "numpy": f"{version('numpy')} and 0.0"}


class TestWithoutTheExtraPaper:
    @pytest.fixture(autouse=True)
    def _not_installed(self, monkeypatch):
        """As if gensim were not installed."""
        for module in ("chain.tasks", "grouping.registry"):
            monkeypatch.setattr(f"erasable.{module}.find_spec", lambda name: None)
        _environment.cache_clear()
        yield
        _environment.cache_clear()

    def test_it_is_not_named_and_all_else_is(self):
        here = numeric_environment()
        assert "gensim" not in here
        assert {"numpy", "scipy", "numba", "llvmlite", "erasable"} < set(here)

    def test_groups_that_are_decided_anew_by_its_vectors_say_what_they_need(self):
        assert "numba" in used_beside(Config(model="nmf", grouping="cbkm", policy="regroup"))
        with pytest.raises(UnknownModel, match=r"not possible here: install gensim \(the extra paper\)"):
            used_beside(Config(model="nmf", grouping="cbkm", vectors="gensim", policy="regroup"))

    def test_learning_with_them_is_refused_before_anything_is_done(self):
        assert Config.of({}, "paper").grouping == "cbkm"
        for settings, preset in (({"model": "nmf", "grouping": "cbkm"}, None), ({}, "paper")):
            with pytest.raises(WrongSetting, match=re.escape(install_command("paper"))):
                Config.of({**settings, "vectors": "gensim"}, preset)
