"""The sentences under settings are found without running anything, also those of a parent."""

from pydantic import Field

from erasable.checked_settings import CheckedSettings, sentences_of


class Parent(CheckedSettings):
    """Some settings."""

    kept: int = Field(1, ge=1)
    """What is kept,
    on two lines."""

    bare: int = 2
    said: int = Field(3, description="Said in the field.")


class Child(Parent):
    """More settings."""

    kept: int = 4
    """What the child keeps."""
    own: str = "x"
    "Its own."


def test_the_sentence_under_each_setting_is_found():
    assert sentences_of(Parent) == {"kept": "What is kept,\non two lines.", "bare": "", "said": "Said in the field."}


def test_a_child_has_those_of_its_parent_or_its_own():
    found = sentences_of(Child)
    assert found == {"kept": "What the child keeps.", "bare": "", "said": "Said in the field.", "own": "Its own."}


def test_a_class_that_is_in_no_file_has_none():
    made = {}
    exec("class Made(Base):\n    own: int = 1\n    'Unseen.'", {"Base": CheckedSettings}, made)
    assert sentences_of(made["Made"]) == {"own": ""}
