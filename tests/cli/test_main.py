"""The command as a whole: its subcommands, the JSON contract, refusals, exit codes, Ctrl-C."""

import signal
import subprocess
import sys
import time

import pytest

from erasable import __version__
from erasable.operations import DiskStorage
from kit.choosing import some

COMMANDS = [
    *("demo", "learn", "sync", "recommend", "similar", "items", "show", "plan", "forget", "verify", "scan", "attack"),
    *("evaluate", "compare", "tune", "groups", "status", "upgrade", "reproduce", "serve", "doctor", "data", "token"),
]
WITH_A_FOLDER = {
    "recommend": ("--user", "ann"),
    "similar": ("--item", "a"),
    "items": (),
    "show": ("--user", "ann"),
    "plan": ("--user", "ann"),
    "forget": ("--user", "ann"),
    "verify": (),
    "evaluate": (),
    "groups": (),
    "status": (),
    "upgrade": (),
}
# The contract of DESIGN.md, section 6: the least that each command says, and of which kind.
FIELDS = {
    "learn": {"users": int, "items": int, "interactions": int, "groups": int, "seconds": float},
    "recommend": {"recommendations": list},
    "show": {"user_id": str, "interactions": list},
    "plan": {"stages_rerun": int, "stages_total": int, "cost_ratio": float, "seconds_estimated": float},
    "forget": {
        "certificates": list,
        "stages_rerun": int,
        "stages_total": int,
        "cost_ratio": float,
        "seconds": float,
        "receipts": list,
    },
    "verify": {"identical": bool, "compared": int, "reason": str, "stages_replayed": int, "recorded": bool},
    "evaluate": {
        "users": int,
        **dict.fromkeys(["hr@10", "ndcg@10", "recall@10", "hr@20", "ndcg@20", "recall@20"], float),
    },
    "groups": {"groups": list},
    "status": {
        **dict.fromkeys(["users", "items", "interactions", "groups", "erasures", "version", "pending", "records"], int),
        **dict.fromkeys(["model", "strategy", "grouping", "policy", "public_key"], str),
    },
    "doctor": {"machine": str, "numba": str},
}


def arguments_of(command, shop, measured, ratings_file, tmp_path):
    if command == "learn":
        return [ratings_file, "--into", tmp_path / "new", "--model", "nmf", "--groups", "3", "--epochs", "3"]
    if command == "doctor":
        return []
    return [measured if command == "evaluate" else shop, *WITH_A_FOLDER[command]]


@pytest.mark.parametrize("command", FIELDS)
def test_json_is_one_object_with_the_fields_of_the_contract_and_nothing_else_is_said(
    run, command, shop, measured, ratings_file, tmp_path
):
    result = run(command, *arguments_of(command, shop, measured, ratings_file, tmp_path), "--json")
    assert (result.code, result.err) == (0, "")
    assert {name: type(result.json[name]) for name in FIELDS[command]} == FIELDS[command]


@pytest.mark.parametrize("command", FIELDS)
def test_words_are_on_standard_output_and_standard_error_is_silent_without_a_terminal(
    run, command, shop, measured, ratings_file, tmp_path
):
    result = run(command, *arguments_of(command, shop, measured, ratings_file, tmp_path))
    assert (result.code, result.err) == (0, "")
    assert result.out.strip()
    assert not result.out.startswith((" ", "\n", "{"))


def test_the_contract_holds_in_a_process_of_its_own(run_apart, learned):
    result = run_apart("status", learned, "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json["users"] == 8


@pytest.mark.parametrize("command", WITH_A_FOLDER)
@pytest.mark.parametrize("kind", ["missing", "a file", "an empty folder", "a folder of something else"])
def test_what_is_no_workspace_is_refused_with_the_remedy_and_left_alone(run, content_of, tmp_path, command, kind):
    place = tmp_path / "place"
    if kind == "a file":
        place.write_text("notes")
    elif kind != "missing":
        place.mkdir()
    if kind == "a folder of something else":
        (place / "notes.txt").write_text("notes")
    before = content_of(tmp_path)
    result = run(command, place, *WITH_A_FOLDER[command], "--json")
    assert (result.code, result.out) == (2 if command in ("scan", "verify") else 1, "")
    assert result.err.startswith(f"erasable: {'there is no folder ' * (kind == 'missing')}{place}")
    assert "erasable learn" in result.err
    assert result.err.count("\n") == 1
    assert content_of(tmp_path) == before
    assert kind == "missing" or list(tmp_path.rglob("*.lock")) == []


@pytest.mark.parametrize("command", WITH_A_FOLDER)
def test_a_damaged_workspace_is_refused_and_not_used(run, shop, command):
    manifest = shop / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"version": 1', b'"version": 2'))
    result = run(command, shop, *WITH_A_FOLDER[command])
    # To say what is damaged is what verify is for.
    said, silent = (result.out, result.err) if command == "verify" else (result.err, result.out)
    assert (result.code, silent) == (1, "")
    assert f"{manifest} is damaged" in said
    assert "learn again" in said


def test_the_version_is_printed(run):
    result = run("--version")
    assert (result.code, result.out, result.err) == (0, f"erasable {__version__}\n", "")


def test_without_a_command_the_help_lists_every_command_in_whole_sentences(run):
    result = run()
    assert result.code == 2
    listed = dict(line.split(maxsplit=1) for line in (result.out + result.err).split("Commands:\n")[1].splitlines())
    assert list(listed) == COMMANDS
    assert all(sentence.endswith(".") and not sentence.endswith(("..", "Art.")) for sentence in listed.values())


def test_an_earlier_name_of_a_command_still_works_and_is_not_shown(run):
    assert run("audit", "--help").out == run("attack", "--help").out.replace("erasable attack", "erasable audit")
    assert "audit" not in run("--help").out


def test_what_is_slow_to_load_waits_until_it_is_needed():
    slow = {"scipy.stats", "gensim", "matplotlib", "fastapi", "uvicorn", "jinja2", "requests"}
    code = f"import sys, erasable.cli.main; erasable.cli.main.make_app(); print(sorted({slow!r} & {{*sys.modules}}))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"[]\n"


@pytest.mark.parametrize(
    ("command", "loaded"), some([("learn", False), ("status", False), ("", True), ("reproduce", True)], 2)
)
def test_a_command_is_loaded_when_it_is_called_and_the_paper_with_its_own_only(command, loaded):
    code = f"""
import sys, erasable.cli.main
sys.argv = ["erasable", *{command.split()!r}, "--help"]
try:
    erasable.cli.main.main()
finally:
    loaded = sorted(name for name in sys.modules if name in ("erasable.paper", "erasable.cli.reproduce"))
    print(loaded, file=sys.stderr)
"""
    heard = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stderr
    assert heard.strip() == str(["erasable.cli.reproduce", "erasable.paper"] if loaded else [])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(run, command):
    result = run(command, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: erasable {command} ")
    assert run(command, "-h") == result


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("unlearn",), "No such command 'unlearn'"),
        (("status",), "Missing argument 'DIR'"),
        (("learn", "ratings.csv"), "Missing option '--into'"),
        (("show", "shop"), "Missing option '--user'"),
        (("status", "shop", "--loud"), "No such option: --loud"),
        (
            ("learn", "ratings.csv", "--into", "shop", "--model", "svd"),
            "there is no model 'svd': choose one of als, ease, nmf, dmf, item-knn, popular",
        ),
        (
            ("learn", "ratings.csv", "--into", "shop", "--model", "nmf", "--epochs", "many"),
            "Invalid value for '--epochs'",
        ),
        (("learn", "ratings.csv", "--into", "shop", "--threads", "0"), "Invalid value for '--threads'"),
        (("learn", "ratings.csv", "--into", "shop", "--rating-scale", "1"), "--rating-scale"),
    ],
)
def test_wrong_use_ends_with_2_and_says_what_is_wrong(run, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert "Traceback" not in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_a_reader_of_the_output_that_goes_away_is_no_error(start_apart, learned):
    process = start_apart("recommend", learned, "--all")
    process.stdout.close()
    process.wait()
    assert process.stderr.read() == ""


def wait_for(condition, process: subprocess.Popen) -> None:
    """Wait until something is there, as long as the process goes on."""
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


@pytest.mark.full
def test_ctrl_c_while_learning_leaves_nothing_behind_and_says_one_line(start_apart, big_file, tmp_path):
    folder = tmp_path / "deep" / "shop"
    process = start_apart("learn", big_file, "--into", folder, "--model", "nmf", "--groups", "20", "--epochs", "300")
    wait_for(lambda: list(folder.glob("checkpoints/*.safetensors")), process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "erasable: stopped; nothing is left half done\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_ctrl_c_while_forgetting_leaves_the_workspace_as_it_was(start_apart, big_shop, content_of):
    with DiskStorage(big_shop).queue():  # it is named from its first use on
        before = content_of(big_shop)
    process = start_apart("forget", big_shop, "--user", "first")
    wait_for(lambda: len(list(big_shop.glob("checkpoints/*.safetensors"))) > 10, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "erasable: stopped; nothing is left half done\n")
    assert content_of(big_shop) == before
