import pytest

from erasable.cli.options import read_config
from erasable.errors import WrongUse


def test_without_a_file_there_are_no_settings():
    assert read_config(None, {"groups"}) == {}


@pytest.mark.parametrize(("name", "text"), [("c.toml", "groups = 3\n"), ("c.json", '{"groups": 3}')])
def test_toml_and_json(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_config(tmp_path / name, {"groups"}) == {"groups": 3}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.toml", "groups 3", "neither TOML nor JSON"),
        ("c.json", "[3]", "holds no settings"),
        ("c.toml", "xyz = 3", "there is no setting 'xyz': the settings are epochs, groups"),
        ("c.toml", "group = 3", "there is no setting 'group': did you mean 'groups'. The settings are epochs, groups"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(WrongUse, match=f"{name}: .*{said}"):
        read_config(tmp_path / name, {"groups", "epochs"})
