import pytest

from erasable.errors import NotYet
from erasable.models import Dmf, ModelSettings, Nmf, make_model


@pytest.mark.parametrize(("name", "kind"), [("nmf", Nmf), ("dmf", Dmf)])
def test_a_model_is_made_by_name(name, kind):
    assert isinstance(make_model(ModelSettings(model=name)), kind)


@pytest.mark.parametrize("name", ["ease", "als"])
def test_a_model_that_is_not_there_yet_is_refused_with_those_that_are(name):
    with pytest.raises(NotYet, match=f"{name} is not there yet: choose one of nmf, dmf"):
        make_model(ModelSettings(model=name))
