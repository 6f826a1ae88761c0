import pytest

from erasable.paper._cells import METHODS, config_of, method_settings


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_some_settings_of_learn(method):
    assert config_of({"model": "nmf", **method_settings(method, 4)}).groups == (1 if method == "Retrain" else 4)


@pytest.mark.parametrize("method", METHODS)
def test_with_one_group_all_methods_are_the_same(method):
    assert method_settings(method, 1) == method_settings("Retrain", 8)


def test_the_documents_order_is_easy_first_and_its_ablation_hard_first():
    assert config_of({"model": "nmf", **method_settings("L-CBKM", 4)}).order == "easy"
    assert config_of({"model": "nmf", **method_settings("L-CBKM hard", 4)}).order == "hard"
