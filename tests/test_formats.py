"""The page on formats names every kind of document, with the numbers that stand in the code."""

import re
from pathlib import Path

import pytest

from erasable.proof.certificate import FORMAT_OF_0_1
from erasable.workspace import files

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "erasable"
NUMBERS = {
    path.relative_to(SOURCE).as_posix(): int(found[1])
    for path in sorted(SOURCE.rglob("*.py"))
    if (found := re.search(r"^_?FORMAT = (\d+)$", path.read_text(encoding="utf-8"), re.MULTILINE))
}
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "reference" / "formats.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ")
][1:]


def row_of(module: str) -> list[str]:
    return next(row for row in ROWS if f"`{module}`" in row[-1])


def test_every_format_of_the_code_is_found():
    assert len(NUMBERS) >= 9


@pytest.mark.parametrize("module", sorted(NUMBERS))
def test_every_document_is_on_the_page_with_its_number(module):
    assert row_of(module)[2].split(",")[0] == str(NUMBERS[module])


def test_what_0_1_wrote_is_there_too():
    assert row_of("proof/certificate.py")[3] == str(FORMAT_OF_0_1)


def test_every_reader_on_the_page_is_there():
    named = [name for row in ROWS for name in re.findall(r"`([^`]+\.py)`", row[-1])]
    assert named
    assert [name for name in named if not (SOURCE / name).is_file()] == []


def test_every_file_of_a_workspace_is_on_the_page():
    places = [name for row in ROWS for name in re.findall(r"`([^`]+)`", row[1])]
    forms = [re.compile(re.escape(place).replace("…", r"[\w.-]+")) for place in places]
    released = (ROOT / "tests" / "fixtures" / "workspaces").glob("*/*/workspace")
    found = {path.relative_to(one).as_posix() for one in released for path in one.rglob("*") if path.is_file()}
    found = {name for name in found if not name.endswith((".new", "notes.txt"))}
    hashed = (
        files.block_name(0),
        "sealed/certificates-0001.json",
        "sealed/log-0001.jsonl",
        files.REQUESTS,
        files.CONFIG,
        files.KEY,
    )
    found |= {files.hashed_name(name, "0123456789abcdef") for name in hashed}
    assert len(found) > 50
    assert sorted(name for name in found if not any(form.fullmatch(name) for form in forms)) == []
