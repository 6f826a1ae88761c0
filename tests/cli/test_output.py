"""What a command shows: words as they are, tables, JSON, and progress for terminals only."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from erasable.cli.output import TerminalReporter, print_error, print_facts, print_json, print_line, print_table
from erasable.wording import counted
from kit.choosing import some

COMMAND = Path(sys.executable).parent / "erasable"


def with_a_terminal(*words: object) -> tuple[int, str, str]:
    """Run the command with standard error on a terminal; return exit code, standard output, and the terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([COMMAND, *map(str, words)], stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # how a terminal says that nobody writes any more
            break
        if not part:
            break
        shown += part
    os.close(ours)
    out, _ = process.communicate()
    return process.returncode, out.decode(), shown.decode()


def test_a_long_table_is_printed_whole_and_in_order(capsys):
    print_table(("user", "rank"), [(f"u{number}", number) for number in range(2500)])
    first, *others = capsys.readouterr().out.splitlines()
    assert first.split() == ["user", "rank"]
    assert [line.split()[0] for line in others] == [f"u{number}" for number in range(2500)]
    assert {len(line) for line in others} == {len("u2499  2,499")}


class TestWords:
    @pytest.mark.parametrize("text", ["[red]ann[/red]", "[/nothing]", ":smile:", "x" * 500, "Ä  ", "a\\[b]"])
    def test_a_line_is_shown_as_it_is(self, capsys, text):
        print_line(text)
        assert capsys.readouterr().out == text + "\n"

    @pytest.mark.parametrize("control", ["\x1b", "\x9b", "\r", "\x07", "\x08", "\0", "\x7f"])
    def test_nothing_that_is_shown_commands_a_terminal(self, capsys, control):
        text = f"als{control}[2J{control}]0;title"
        print_line(text)
        print_error(text)
        print_facts({"model": text})
        print_table(("model",), [(text,)])
        said = capsys.readouterr()
        assert control not in said.out + said.err
        assert (said.out + said.err).count(f"als\\x{ord(control):02x}[2J") == 4

    def test_an_error_is_one_line_on_standard_error(self, capsys):
        print_error("user '[red]' " + "x" * 200)
        said = capsys.readouterr()
        assert (said.out, said.err) == ("", "erasable: user '[red]' " + "x" * 200 + "\n")

    def test_counts(self):
        assert [counted(number, "user") for number in (0, 1, 2, 1000)] == [
            "0 users",
            "1 user",
            "2 users",
            "1,000 users",
        ]
        assert counted(2, "person", "people") == "2 people"


class TestTables:
    def test_numbers_stand_right_and_text_left(self, capsys):
        print_table(("item", "count", "score"), [("a", 5, 0.5), ("long name", 1200, -1.25)])
        assert capsys.readouterr().out.splitlines() == [
            "item       count    score",
            "a              5   0.5000",
            "long name  1,200  -1.2500",
        ]

    def test_an_id_is_neither_cut_nor_broken_nor_taken_for_markup(self, capsys):
        print_table(("user", "rank"), [("x" * 300, 1), ("[/foo]", 2), (":smile:", 3)])
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines] == ["user", "x" * 300, "[/foo]", ":smile:"]

    def test_wide_letters_do_not_shift_the_columns(self, capsys):
        print_table(("user", "rank"), [("日本", 1), ("abcd", 2)])
        assert capsys.readouterr().out.splitlines()[1:] == ["日本     1", "abcd     2"]

    def test_an_empty_table_is_its_heading(self, capsys):
        print_table(("user", "rank"), [])
        assert capsys.readouterr().out == "user  rank\n"

    def test_facts_are_names_and_values_one_a_line(self, capsys):
        print_facts({"users": 1200, "held_out": 3, "model": "nmf"})
        assert capsys.readouterr().out.splitlines() == ["users     1,200", "held out  3", "model     nmf"]


def test_json_is_readable_by_people_too(capsys):
    print_json({"user_id": "Ä", "items": []})
    out = capsys.readouterr().out
    assert json.loads(out) == {"user_id": "Ä", "items": []}
    assert '"Ä"' in out
    assert out.endswith("}\n")


class TestProgress:
    @pytest.mark.parametrize("colour", [None, "1"])
    def test_without_a_terminal_nothing_is_shown(self, capsys, monkeypatch, colour):
        if colour:
            monkeypatch.setenv("FORCE_COLOR", colour)
        reporter = TerminalReporter()
        reporter.note("a note")
        with reporter.track("working", 3) as advance:
            advance(2)
        said = capsys.readouterr()
        assert (said.out, said.err) == ("", "")

    def test_a_terminal_shows_notes_and_a_bar_and_standard_output_stays_clean(self, ratings_file, tmp_path):
        code, out, shown = with_a_terminal(
            "learn", ratings_file, "--into", tmp_path / "shop", "--model", "nmf", "--groups", 2
        )
        assert code == 0
        assert out.startswith("learned 8 users")
        assert "comma-separated" in shown
        assert "rating scale 1–5" in shown
        assert "learning" in shown
        assert "100%" in shown

    @pytest.mark.full
    @pytest.mark.parametrize("option", some(["--json", "--quiet"], 1))
    def test_quiet_and_json_are_silent_even_on_a_terminal(self, ratings_file, tmp_path, option):
        words = ("learn", ratings_file, "--into", tmp_path / "shop", "--model", "nmf", "--groups", 2, option)
        code, out, shown = with_a_terminal(*words)
        assert (code, shown) == (0, "")
        assert out == "" if option == "--quiet" else out.startswith("{")


@pytest.fixture(scope="module")
def run_in_shell(tmp_path_factory):
    """Run a line of a shell in a folder with a workspace; `erasable` is the command."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "few.csv").write_text("user,item\nann,a\nann,b\nbob,a\nbob,c\n")
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"

    def run(line):
        words = ["bash", "-c", f"{line}"]
        return subprocess.run(
            words, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
        )

    assert run("erasable learn few.csv --into shop").returncode == 0
    return run


FULL = "the result can't be printed (No space left on device), and what it tells of is done"


@pytest.mark.parametrize("option", some(["", "--json"], 2))
@pytest.mark.parametrize(("place", "code", "said"), [(">/dev/full", 1, FULL), (">&-", 0, ""), ("2>&-", 0, "")])
def test_a_stream_that_can_t_be_written_is_no_bug(run_in_shell, option, place, code, said):
    ran = run_in_shell(f"erasable status shop {option} {place}")
    assert (ran.returncode, said in ran.stderr, "Traceback" in ran.stderr) == (code, True, False)


@pytest.mark.parametrize(
    ("words", "code"), [("status shop", 1), ("status shop --json", 1), ("verify shop", 2), ("verify shop --json", 2)]
)
def test_whoever_has_read_enough_hears_no_more(run_in_shell, words, code):
    ran = run_in_shell(f"(erasable {words}; echo $? >&2) | true")
    assert ran.stderr == f"{code}\n"


@pytest.mark.parametrize(
    ("environment", "escapes"), [({}, 4), ({"NO_COLOR": ""}, 4), ({"NO_COLOR": "1"}, 0), ({"TERM": "dumb"}, 0)]
)
def test_only_what_has_a_style_is_styled(monkeypatch, capsys, environment, escapes):
    monkeypatch.setattr("typer.echo", lambda text, err: print(text))  # a terminal keeps what typer would leave out
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    print_table(["user", "score"], [["ann", 1.0]])
    print_error("no")
    heading, row, error = capsys.readouterr().out.splitlines()
    assert (heading + error).count("\x1b[") == escapes
    assert row == "ann   1.0000"
