import pytest

from erasable.models import Dmf, ModelSettings, Nmf, make_model
from erasable.models.als import Als
from erasable.models.ease import Ease


@pytest.mark.parametrize(("name", "kind"), [("nmf", Nmf), ("dmf", Dmf), ("ease", Ease), ("als", Als)])
def test_a_model_is_made_by_name(name, kind):
    assert isinstance(make_model(ModelSettings(model=name)), kind)
