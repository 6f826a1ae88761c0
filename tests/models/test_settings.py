"""Each model owns its settings: its own names, bounds and defaults, and nothing of another model's."""

import pytest
from pydantic import ValidationError

from erasable.checked_settings import sentences_of
from erasable.errors import WrongSetting
from erasable.models import ALS, DMF, EASE, NMF

STEPS = {"epochs": 20, "batch": 2048, "negatives": 4, "learning_rate": 0.001, "row_epochs": 3}


@pytest.mark.parametrize(
    ("model", "defaults"),
    [
        (ALS, {"factors": 64, "regularisation": 20.0, "epochs": 20}),
        (EASE, {"neighbours": 200, "regularisation": None}),
        (NMF, STEPS),
        (DMF, {**STEPS, "learning_rate": 0.005}),
    ],
)
def test_the_settings_of_each_model_and_their_defaults(model, defaults):
    assert model().settings.model_dump() == defaults


@pytest.mark.parametrize(
    ("model", "wrong", "possible"),
    [
        (NMF, {"batch": 0}, "at least 1"),
        (NMF, {"negatives": -1}, "at least 0"),
        (NMF, {"batch": 1.5}, "a whole number"),
        (DMF, {"learning_rate": 0}, "more than 0"),
        (DMF, {"learning_rate": 2}, "at most 1"),
        (DMF, {"learning_rate": "fast"}, "a number"),
        (ALS, {"regularisation": 0}, "more than 0"),
        (EASE, {"regularisation": 1e13}, "at most 1e+12"),
        (ALS, {"factors": 0}, "at least 1"),
    ],
    ids=str,
)
def test_a_value_without_sense_is_refused_with_what_can_be_given(model, wrong, possible):
    with pytest.raises(WrongSetting) as refused:
        model(**wrong)
    assert str(refused.value) == f"wrong setting `{next(iter(wrong))}`: give {possible}"


def test_a_setting_that_is_not_there_is_refused_with_the_nearest():
    with pytest.raises(WrongSetting, match="there is no setting `n_factors` in als: did you mean `factors`") as refused:
        ALS(n_factors=3)
    assert refused.value.of_command == "als has no option --n-factors: did you mean --factors?"
    with pytest.raises(WrongSetting, match="in ease: there are `neighbours`, `regularisation`"):
        EASE(xyz=3)


def test_the_american_spelling_is_accepted():
    assert ALS(regularization=3).settings == ALS(regularisation=3).settings


def test_a_model_is_shown_as_it_was_made():
    assert repr(ALS(factors=64)) == "ALS(factors=64)"
    assert repr(NMF()) == "NMF()"


def test_settings_can_t_be_changed():
    with pytest.raises(ValidationError):
        NMF().settings.batch = 1


@pytest.mark.parametrize("model", [ALS, EASE, NMF, DMF])
def test_every_setting_has_a_sentence(model):
    assert all(len(sentence) > 10 for sentence in sentences_of(model.settings_class).values())


def test_what_other_libraries_call_a_setting_is_answered_with_our_name():
    with pytest.raises(WrongSetting, match="did you mean `epochs`"):
        ALS(iterations=15)
