"""`--quiet`: nothing but errors, and answers where one is asked for; and JSON where it is asked for."""

import inspect
import json

import pytest

from erasable.cli.main import make_app

MORE = "user_id,item_id,rating\nzoe,a,5\n"
SCAN = ("scan", "{shop}", "--user", "nobody")
COMMANDS = {
    "learn": ("learn", "{input}", "--into", "{new}", "--model", "nmf", "--groups", "2", "--epochs", "1"),
    "learn --more": ("learn", "{more}", "--into", "{shop}", "--more"),
    "learn --again": ("learn", "--into", "{shop}", "--again"),
    "sync": ("sync", "{input}", "--into", "{shop}"),
    "recommend": ("recommend", "{shop}", "--user", "ann"),
    "recommend --out": ("recommend", "{shop}", "--all", "--out", "{new}.csv"),
    "items": ("items", "{shop}", "--hide", "a"),
    "plan": ("plan", "{shop}", "--user", "ann"),
    "forget": ("forget", "{shop}", "--user", "ann"),
    "verify": ("verify", "{shop}"),
    "scan": SCAN,
    "groups": ("groups", "{shop}"),
    "upgrade": ("upgrade", "{shop}"),
    "data make": ("data", "make", "{new}.csv"),
}
ANSWERS = {"recommend", "recommend --out", "plan", "forget", "groups"}
NOT_RUN = {
    "attack",
    "compare",
    "reproduce",
    "tune",
    "data get",
}  # they take long or need a connection; the option is the same one


@pytest.fixture
def words(shop, ratings_file, tmp_path):
    (tmp_path / "more.csv").write_text(MORE)
    places = {"shop": shop, "input": ratings_file, "new": tmp_path / "new", "more": tmp_path / "more.csv"}
    return lambda name: [word.format(**places) for word in COMMANDS[name]]


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - ANSWERS))
@pytest.mark.parametrize("option", ["-q", "--quiet"])
def test_a_quiet_command_prints_nothing(run, words, name, option):
    result = run(*words(name), option)
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_an_answer_is_printed_and_nothing_beside_it(run, words, name):
    result = run(*words(name), "--quiet")
    assert (result.code, result.err) == (0, "")
    assert result.out


@pytest.mark.parametrize("name", [name for name in COMMANDS if "--out" not in name])
def test_it_prints_json_where_that_is_asked_for(run, words, name):
    result = run(*words(name), "--quiet", "--json")
    assert result.err == ""
    assert json.loads(result.out)


def test_it_says_why_it_ends(run, shop):
    result = run("forget", shop, "--user", "nobody", "--quiet")
    assert (result.code, result.out) == (1, "")
    assert "nobody" in result.err


def test_the_next_command_of_the_same_process_is_heard_again(run, words):
    run(*words("verify"), "-q")
    assert run(*words("verify")).out
    run(*words("verify"), "-q")
    assert run("status", words("verify")[1]).out


def test_every_command_that_has_the_option_is_looked_at():
    app = make_app()
    having = {
        name
        for name, command in [(one.name, one.callback) for one in app.registered_commands if not one.hidden]
        if "quiet" in inspect.signature(inspect.unwrap(command)).parameters
    }
    having |= {
        f"{group.name} {one.name}"
        for group in app.registered_groups
        for one in group.typer_instance.registered_commands
        if "quiet" in inspect.signature(inspect.unwrap(one.callback)).parameters
    }
    assert having == {name.partition(" --")[0] for name in COMMANDS} | NOT_RUN
