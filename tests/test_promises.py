"""The table of promises in tests/README.md names tests that are there, and all that guard an invariant."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
README = (TESTS / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (TESTS.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split("|") for line in README.splitlines() if line.startswith("| ") and "`" in line][1:]
GUARDS = {name for row in ROWS for cell in row[1:] for name in re.findall(r"`([\w/]+(?:\.py|/))`", cell)}


def test_every_promise_has_a_quick_guard_that_is_there():
    assert len(ROWS) > 50
    assert [row[0] for row in ROWS if not re.search(r"`[\w/]+(?:\.py|/)`", row[1])] == []
    assert sorted(name for name in GUARDS if not (TESTS / name).exists()) == []


def test_every_test_that_guards_an_invariant_is_named():
    table = ARCHITECTURE.split("## What must always hold")[1].split("\n## ")[0]
    invariants = {*re.findall(r"`tests/([\w/]+\.py)`", table)}
    folders = tuple(name for name in GUARDS if name.endswith("/"))
    assert len(invariants) > 40
    assert sorted(name for name in invariants - GUARDS if not name.startswith(folders)) == []


def test_the_quick_guards_are_not_all_marked_full():
    whole = re.compile(r"^pytestmark = .*\bfull\b", re.MULTILINE)
    files = [TESTS / name for row in ROWS for name in re.findall(r"`([\w/]+\.py)`", row[1])]
    assert [path.name for path in files if whole.search(path.read_text(encoding="utf-8"))] == []
