"""The example in the README of the scan does what it says."""

import re
from pathlib import Path

import erasable.scan

README = Path(erasable.scan.__file__).with_name("README.md")


def test_the_example_prints_what_stands_below_it(capsys):
    example, printed = re.findall("```(?:python|text)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, str(README), "exec"), {})
    assert capsys.readouterr().out == printed


def test_it_names_every_file_of_the_unit():
    named = set(re.findall(r"`(_\w+\.py)`", README.read_text(encoding="utf-8")))
    assert named == {path.name for path in README.parent.glob("*.py")} - {"__init__.py"}
