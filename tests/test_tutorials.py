"""README, tutorials and the notebook do what they show: each is run as it stands, in an empty folder."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def script(name: str):
    """Load a script of the documentation."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = script("run_pages")


def test_every_tutorial_is_run():
    tutorials = {path.stem for path in (ROOT / "docs" / "tutorials").iterdir() if path.suffix in (".md", ".ipynb")}
    assert tutorials - {"index"} == {Path(page).stem for page in pages.PAGES} - {"README"}


@pytest.mark.full
@pytest.mark.parametrize("page", pages.PAGES)
def test_a_page_prints_what_it_shows(page):
    shown, printed = pages.run_in_folder(page)
    assert pages.alike(shown) == pages.alike(printed), "run scripts/outputs"


def test_a_page_that_shows_something_else_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "```console\n$ echo $((40 + 2))\n41\n```\n\n```python\nprint('a')\n```\n\n```text\nb\n```\n"
    assert pages.run_page(page) == page.replace("41", "42").replace("\nb\n", "\na\n")


def test_a_command_that_fails_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match="ended with 3"):
        pages.run_page("```console\n$ (exit 3)\n```\n")


def test_variables_and_files_of_a_page_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "```python\n# one.py\nprint(7)\n```\n\n```console\n$ A=1\n```\n\n```console\n$ echo $A; cat one.py\n```\n"
    assert "\n1\n# one.py\nprint(7)\n" in pages.run_page(page)


def test_only_a_port_is_exchanged():
    page = "serve --port 8972; http://127.0.0.1:8972/x; score 0.8972"
    assert pages.with_port(page, "8972", "5") == "serve --port 5; http://127.0.0.1:5/x; score 0.8972"


def test_ids_times_and_shares_may_differ_and_nothing_else():
    text = "took 1.5 s for 80% of 0123456789abcdef0123456789abcdef on 2026-01-02"
    other = "took 20 s for 8% of ffffffffffffffffffffffffffffffff on 2027-11-30"
    assert pages.alike(text) == pages.alike(other)
    assert pages.alike("3 arrays") != pages.alike("4 arrays")


def test_the_notebook_was_run_to_its_end():
    cells = json.loads((ROOT / "docs" / "tutorials" / "first-erasure.ipynb").read_text())["cells"]
    outputs = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
    assert all(outputs)
    assert not [one for each in outputs for one in each if one["output_type"] == "error"]


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 900


def test_a_console_block_is_told_from_its_output():
    assert list(pages.commands("$ a \\\n  b\nsaid\n$ c\n")) == ["a \\\n  b", "c"]
    assert re.search(pages.BLOCK, "```console\n$ a\n```")
