"""The documentation site: Sphinx with Markdown and one notebook; every page works without a request to another host."""

import ast
import importlib
import inspect
import os
import re
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

DOCS = Path(__file__).parent
ROOT = DOCS.parent

project = "erasable"
author = "the authors of erasable"
release = version_of("erasable")
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "*.py", "**/.ipynb_checkpoints"]
templates_path: list[str] = []

html_theme = "furo"
html_title = "erasable"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {"footer_icons": []}

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # tests/test_tutorials.py runs the notebook and compares what it prints
suppress_warnings = ["myst.header"]  # some pages begin at the second level in an included file

napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Methods", "params_style")]  # a list, since `:members:` describes each of them
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say the types in the reader's words
add_module_names = False
default_role = "literal"  # a name in backticks, as docstrings write it

INCLUDE = re.compile(r"^```\{include\} (\S+)\n```$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
PICTURE = re.compile(r"(!\[[^\]]*\]\()([^)\s]+)\)")
MERMAID = re.compile(r"^```mermaid$", re.MULTILINE)


def page_of(path: Path) -> Path | None:
    """Return the page of the site that shows a file: itself, the index of a folder, or the page that includes it."""
    if path.is_dir():
        path = path / "index.md"
    if path.is_relative_to(DOCS):
        return path if path.exists() else None
    pages = (*DOCS.glob("project/**/*.md"), *DOCS.glob("benchmarks/*.md"), *DOCS.glob("reference/*.md"))
    for page in pages:
        if any((page.parent / name).resolve() == path for name in INCLUDE.findall(page.read_text(encoding="utf-8"))):
            return page
    return None


def for_the_site(text: str, file: Path, page: Path) -> str:
    """Return a file's text for a page of the site: links lead to pages, and to a file's path where there is no page."""

    def link(found: re.Match[str]) -> str:
        words, (path, _, anchor) = found[1], found[2].partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return found[0]
        target = (file.parent / path).resolve()
        shown = page_of(target)
        if shown is None:
            name = str(target.relative_to(ROOT))
            return words if name in words else f"{words} (`{name}`)"
        return f"[{words}]({os.path.relpath(shown, page.parent)}{'#' + anchor if anchor else ''})"

    def include(found: re.Match[str]) -> str:
        other = (page.parent / found[1]).resolve()
        return for_the_site(other.read_text(encoding="utf-8"), other, page)

    def picture(found: re.Match[str]) -> str:
        return f"{found[1]}{os.path.relpath((file.parent / found[2]).resolve(), page.parent)})"

    text = PICTURE.sub(picture, text)
    text = MERMAID.sub("```text", text)  # a script from another host would draw it
    return INCLUDE.sub(include, LINK.sub(link, text))


def read_source(_app: Sphinx, name: str, source: list[str]) -> None:
    """Give Sphinx a Markdown page as the site needs it."""
    page = DOCS / f"{name}.md"
    if page.exists():
        source[0] = for_the_site(source[0], page, page)


def describe_data(_app: Sphinx, what: str, name: str, _value: object, _options: object, lines: list[str]) -> None:
    """Give a constant or an alias of a unit the sentence under it, in the file that the unit imports it from."""
    if what == "data":
        unit, _, own = name.rpartition(".")
        tree = ast.parse(inspect.getsource(importlib.import_module(unit)))
        imports = (node for node in tree.body if isinstance(node, ast.ImportFrom))
        file = next(node.module for node in imports if any(alias.name == own for alias in node.names))
        lines[:] = ModuleAnalyzer.for_module(file).find_attr_docs()["", own]


def setup(app: Sphinx) -> None:
    """Tell Sphinx about the steps above."""
    app.connect("source-read", read_source)
    app.connect("autodoc-process-docstring", describe_data)
