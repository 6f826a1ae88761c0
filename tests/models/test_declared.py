"""What the class of a model must declare, and what is said where it does not."""

import pytest

from erasable import Recommender
from erasable.chain import Config
from erasable.errors import WrongSetting
from erasable.models import Model, Settings
from kit.counts import Counts


class Required(Settings):
    """Settings one of which has no default."""

    factors: int


class Misspelt(Settings):
    """Settings that name one that is not there."""

    only_for_rows = frozenset({"row_epoch"})
    row_epochs: int = 1


def without(part):
    """Return a model that has all but one attribute."""
    facts = {name: vars(Counts)[name] for name in vars(Counts) if name not in (part, "__dict__", "__weakref__")}
    return type("Mine", (Model,), {**facts, "__abstractmethods__": frozenset(), "__module__": __name__})


def with_part(**parts):
    return type("Mine", (Counts,), {"name": "mine", "__module__": __name__, **parts})


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("name", "a text such as 'bpr'"),
        ("settings_class", "a class that derives from erasable.models.Settings"),
        ("revision", "a whole number such as 1"),
        ("uses", "a tuple of blas, numba and other packages"),
    ],
)
def test_an_attribute_that_is_missing_is_named_with_what_it_should_be(part, expected):
    kind = without(part)
    for use in (kind, lambda: Config(model=kind), lambda: Recommender(kind)):
        with pytest.raises(WrongSetting, match=rf"Mine is not a model: it has no {part}: give the class {expected}"):
            use()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"name": 3}, "its name is 3: give the class a text"),
        ({"revision": "1"}, "its revision is '1': give the class a whole number"),
        ({"settings_class": dict}, "its settings_class is <class 'dict'>: give the class a class that derives from"),
        ({"uses": "numba"}, "its uses is 'numba': give the class a tuple"),
        ({"strategies": "retrain"}, "its strategies is 'retrain': give the class a tuple of strategies"),
        ({"strategies": ()}, "its strategies is (): give the class a tuple of strategies"),
        ({"settings_class": Required}, "its setting 'factors' has no default: give it one in Required"),
        ({"settings_class": Misspelt}, "only_for_rows of Misspelt names row_epoch: give a frozenset of names"),
        (
            {"strategies": ("lazer",)},
            "names the strategy 'lazer', which does not exist: choose one of laser, sisa, retrain",
        ),
        ({"strategies": ("sisa",)}, "names the strategy 'sisa', which needs rows that are trained: leave it out"),
    ],
)
def test_an_attribute_of_another_kind_is_named_with_what_it_should_be(parts, said):
    with pytest.raises(WrongSetting) as raised:
        Config(model=with_part(**parts))
    assert said in str(raised.value)


def test_a_method_that_is_missing_is_named():
    facts = {name: vars(Counts)[name] for name in ("name", "settings_class", "revision", "uses", "start", "train")}
    with pytest.raises(WrongSetting, match="it has no method represent: write represent and score"):
        Config(model=type("Mine", (Model,), facts))


def test_what_does_not_derive_from_model_is_none():
    with pytest.raises(WrongSetting, match=r"is not a model: give a class that derives from erasable\.models\.Model"):
        Config(model=type("Mine", (), dict(vars(Counts))))


@pytest.mark.parametrize(
    ("init", "said"),
    [
        (lambda self: None, "can't be made from its settings"),
        (lambda self, **settings: None, "can't be made from its settings (it then has no settings)"),
    ],
)
def test_an_init_of_its_own_that_takes_no_settings_is_refused(init, said):
    kind = with_part(__init__=init)
    with pytest.raises(WrongSetting) as raised:
        Config(model=kind)
    assert said in str(raised.value)
    assert "leave out its __init__, or take **settings" in str(raised.value)


def test_what_a_model_is_made_with_are_settings():
    def init(self, power=1, **settings):
        Counts.__init__(self, **settings)
        self.power = power

    with pytest.raises(WrongSetting, match="its __init__ takes 'power', which is not a setting: put it into"):
        Config(model=with_part(__init__=init))


def test_an_object_that_was_made_without_settings_is_refused():
    kind = with_part(__init__=lambda self, **settings: None)
    with pytest.raises(WrongSetting, match=r"mine was made without its settings: hand them to super\(\).__init__"):
        Config(model=kind())
