"""Every message's remedy works: each message here is provoked, then what it says is done, and it is gone.

A case is a command that is refused, a part of what it says, and the command that its remedy leads to; both run in the
same folder, and where the remedy changes a file, that is done in between.
"""

import ast
import gzip
import io
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest
import typer

import erasable
from erasable.cli.main import main, make_app
from erasable.operations import DiskStorage
from erasable.requests import Request
from kit import elsewhere
from kit.asking import submit
from kit.copies import copy_of

SMALL = "user_id,item_id,rating\nann,a,1\nann,b,2\nbob,a,5\ncat,c,3\ndan,c,4\n"
LONG = "bobby-the-unmistakable"
LEARN = "learn r.csv --into new"
MORE = "learn --more m.csv --into shop"


@dataclass(frozen=True)
class Case:
    """How a message is provoked, what it says, and what then is done; files are written before the first command."""

    command: str
    said: str
    remedy: str
    files: dict[str, str | bytes] = field(default_factory=dict)
    meanwhile: dict[str, str | bytes | None] = field(default_factory=dict)
    """What the remedy changes in files; None removes one."""
    before: Callable[[], None] | None = None


def stop_before_the_certificate() -> None:
    """Leave an erasure that is accepted and not carried out."""
    submit(DiskStorage(Path("shop")), Request("ann"))


def learn_a_twin() -> None:
    """Learn the same into another folder and erase someone there."""
    assert run("learn r.csv --into twin --model als")[0] == 0
    assert run("forget twin --user ann")[0] == 0
    (certificate,) = Path("twin/certificates").glob("*.json")
    shutil.copy(certificate, "twin.json")
    shutil.copy(certificate.with_suffix(".html"), "twin.html")


def learn_a_catalogue() -> None:
    """Learn with a declared catalogue."""
    Path("items").write_text("a\nb\nc\n")
    assert run("learn r.csv --into declared --model als --catalogue items")[0] == 0


def move_elsewhere() -> None:
    """Let the workspace seem to have been learned in another numeric environment."""
    elsewhere.moved(Path("shop"), numpy="0.0")


def move_elsewhere_before_the_certificate() -> None:
    """Leave an erasure that is done and not certified, in another numeric environment."""
    assert run(f"forget shop --user {LONG}")[0] == 1
    move_elsewhere()


CASES = {
    # what an input holds
    "a rating off the scale": Case(
        f"{LEARN} --rating-scale 1 4", "give --on-bad-row skip", f"{LEARN} --rating-scale 1 4 --on-bad-row skip"
    ),
    "a rating off the scale, another scale": Case(
        f"{LEARN} --rating-scale 1 4", "for another scale give --rating-scale LOW HIGH", f"{LEARN} --rating-scale 1 5"
    ),
    "more, a rating off the scale": Case(
        MORE,
        "give --on-bad-row skip",
        f"{MORE} --on-bad-row skip",
        files={"m.csv": "user_id,item_id,rating\nzoe,a,9\nzoe,b,1\n"},
    ),
    "more, another scale": Case(
        MORE,
        "for another scale learn everything again into another folder, with --rating-scale",
        "learn all.csv --into another --rating-scale 1 9",
        files={"m.csv": "user_id,item_id,rating\nzoe,a,9\n", "all.csv": SMALL + "zoe,a,9\n"},
    ),
    "no known scale": Case(
        LEARN,
        "give the scale with --rating-scale",
        f"{LEARN} --rating-scale 1 77",
        files={"r.csv": SMALL + "eve,a,77\n"},
    ),
    "ratings below 0": Case(
        LEARN, "go below 0: shift them", LEARN, {"r.csv": SMALL + "eve,a,-1\n"}, {"r.csv": SMALL + "eve,a,0\n"}
    ),
    "a scale below 0": Case(f"{LEARN} --rating-scale -1 5", "needs LOW HIGH from 0 up", f"{LEARN} --rating-scale 0 5"),
    "text as a rating": Case(
        LEARN,
        "name another --rating-column",
        f"{LEARN} --rating-column stars",
        files={"r.csv": "user_id,item_id,rating,stars\nann,a,good,1\nbob,a,bad,5\n"},
    ),
    "no ratings, and a scale without 1": Case(
        f"{LEARN} --rating-scale 2 5",
        "name them (--rating-column)",
        f"{LEARN} --rating-scale 2 5 --rating-column stars",
        files={"r.csv": "user_id,item_id,stars\nann,a,2\nbob,a,5\n"},
    ),
    "an empty id": Case(LEARN, "fill it in, or drop the line", LEARN, {"r.csv": SMALL + ",a,1\n"}, {"r.csv": SMALL}),
    "a long id": Case(
        LEARN,
        "shorten it, or drop the line",
        LEARN,
        {"r.csv": SMALL + "x" * 1001 + ",a,1\n"},
        {"r.csv": SMALL + "x" * 1000 + ",a,1\n"},
    ),
    "a short line": Case(
        LEARN, "correct its separators, or drop it", LEARN, {"r.csv": SMALL + "eve,a\n"}, {"r.csv": SMALL + "eve,a,1\n"}
    ),
    "no time": Case(
        LEARN,
        "give seconds or an ISO date and time",
        LEARN,
        {"r.csv": "user,item,time\nann,a,2020-01-01\nbob,a,soon\n"},
        {"r.csv": "user,item,time\nann,a,2020-01-01\nbob,a,2020-01-02\n"},
    ),
    "UTF-16": Case(LEARN, "save it as UTF-8", LEARN, {"r.csv": SMALL.encode("utf-16")}, {"r.csv": SMALL}),
    "not UTF-8": Case(
        LEARN,
        "save the file as UTF-8",
        LEARN,
        {"r.csv": (SMALL + "é,a,1\n").encode("latin-1")},
        {"r.csv": SMALL + "é,a,1\n"},
    ),
    "damaged gzip": Case(
        "learn r.csv.gz --into new",
        "compress it again",
        "learn r.csv.gz --into new",
        {"r.csv.gz": gzip.compress(SMALL.encode())[:-9]},
        {"r.csv.gz": gzip.compress(SMALL.encode())},
    ),
    "one user only": Case(
        LEARN, "two users at least", LEARN, {"r.csv": "user,item\nann,a\n"}, {"r.csv": "user,item\nann,a\nbob,a\n"}
    ),
    "one column only": Case(
        LEARN, "separated by a comma, a tab or ::", LEARN, {"r.csv": "ann\nbob\n"}, {"r.csv": "ann\ta\nbob\ta\n"}
    ),
    # which columns
    "a column that nobody knows": Case(
        LEARN,
        "name one of them with --user-column",
        f"{LEARN} --user-column who",
        files={"r.csv": "who,item,rating\nann,a,1\nbob,a,2\n"},
    ),
    "a column that is not there": Case(
        f"{LEARN} --item-column thing", "name one of them with --item-column", f"{LEARN} --item-column item_id"
    ),
    "a column of a file without a header": Case(
        f"{LEARN} --user-column 7",
        "as a number from 1 to 3",
        f"{LEARN} --user-column 1",
        files={"r.csv": "1,10,1\n2,10,2\n"},
    ),
    "a column that is taken": Case(
        f"{LEARN} --user-column 2",
        "Give --item-column as a number from 1",
        f"{LEARN} --user-column 2 --item-column 1",
        files={"r.csv": "10,1\n11,2\n"},
    ),
    "one column twice": Case(
        f"{LEARN} --user-column user_id --item-column user_id", "its own column", f"{LEARN} --user-column user_id"
    ),
    "more, no rating": Case(
        MORE,
        "name one with --rating-column",
        f"{MORE} --rating-column stars",
        files={"m.csv": "user_id,item_id,stars\nzoe,a,5\n"},
    ),
    "more, a risk that was not asked for": Case(
        f"{MORE} --risk-column risk",
        "leave out --risk-column",
        MORE,
        files={"m.csv": "user_id,item_id,rating,risk\nzoe,a,5,1\n"},
    ),
    "a risk without its threshold": Case(
        f"{LEARN} --risk-column rating", "give both, or neither", f"{LEARN} --risk-column rating --risk-threshold 4"
    ),
    "a threshold without its risk": Case(f"{LEARN} --risk-threshold 4", "give both, or neither", LEARN),
    # settings that do not fit together
    "too many groups": Case(
        f"{LEARN} --model nmf --groups 9", "give --groups 4 or fewer", f"{LEARN} --model nmf --groups 4"
    ),
    "the filter leaves nothing": Case(
        f"{LEARN} --min-interactions 9", "lower --min-interactions", f"{LEARN} --min-interactions 1"
    ),
    "the policy independent": Case(
        f"{LEARN} --model nmf --groups 2 --policy independent",
        "give --grouping independent",
        f"{LEARN} --model nmf --groups 2 --policy independent --grouping independent",
    ),
    "the order of independent groups": Case(
        f"{LEARN} --model nmf --groups 2 --grouping independent --order easy",
        "give --order number",
        f"{LEARN} --model nmf --groups 2 --grouping independent --order number",
    ),
    "an aggregate without sisa": Case(
        f"{LEARN} --model nmf --groups 2 --aggregate own",
        "give --strategy sisa, or leave it out",
        f"{LEARN} --model nmf --groups 2",
    ),
    "stage rows of als": Case(
        f"{LEARN} --model als --rows stage", "give --rows solved", f"{LEARN} --model als --rows solved"
    ),
    "solved rows under sisa": Case(
        f"{LEARN} --model nmf --groups 2 --strategy sisa --anchors 0.5",
        "give --rows stage and --anchors 1",
        f"{LEARN} --model nmf --groups 2 --strategy sisa --rows stage --anchors 1",
    ),
    "laser with als": Case(
        f"{LEARN} --model als --strategy laser", "leave out --strategy laser", f"{LEARN} --model als"
    ),
    "laser with als, another model": Case(
        f"{LEARN} --model als --strategy laser --groups 2",
        "or choose --model nmf",
        f"{LEARN} --model nmf --strategy laser --groups 2",
    ),
    "risk where all are trained at once": Case(
        f"{LEARN} --model nmf --strategy retrain --risk-column rating --risk-threshold 4",
        "give --anchors below 1",
        f"{LEARN} --model nmf --strategy retrain --risk-column rating --risk-threshold 4 --anchors 0.9",
    ),
    "risk with stage rows of ease": Case(
        f"{LEARN} --rows stage --risk-column rating --risk-threshold 4",
        "give --rows solved",
        f"{LEARN} --rows solved --risk-column rating --risk-threshold 4",
    ),
    "factors without als": Case(f"{LEARN} --factors 4", "give --model als", f"{LEARN} --factors 4 --model als"),
    "groups without nmf": Case(f"{LEARN} --groups 2", "give --model nmf", f"{LEARN} --groups 2 --model nmf"),
    "an aggregate without nmf and sisa": Case(
        f"{LEARN} --aggregate own",
        "give --model nmf and --strategy sisa",
        f"{LEARN} --aggregate own --model nmf --strategy sisa --groups 2",
    ),
    "risk where all are trained at once, laser": Case(
        f"{LEARN} --model nmf --strategy retrain --risk-column rating --risk-threshold 4",
        "or --strategy laser",
        f"{LEARN} --model nmf --strategy laser --groups 2 --risk-column rating --risk-threshold 4",
    ),
    "risk and regroup": Case(
        f"{LEARN} --model nmf --groups 2 --policy regroup --risk-column rating --risk-threshold 4",
        "give --policy fixed",
        f"{LEARN} --model nmf --groups 2 --policy fixed --risk-column rating --risk-threshold 4",
    ),
    "too little regularisation": Case(
        f"{LEARN} --model ease --neighbours all --regularisation 1e-300",
        "give a larger --regularisation",
        f"{LEARN} --model ease --neighbours all --regularisation 1",
    ),
    "a setting that there is not": Case(
        f"{LEARN} --config c.toml",
        "The settings are",
        f"{LEARN} --config c.toml",
        {"c.toml": "sed = 2"},
        {"c.toml": "seed = 2"},
    ),
    "given groups without a source": Case(
        f"{LEARN} --model nmf --grouping given",
        "needs --groups-from: give it too",
        f"{LEARN} --model nmf --grouping given --groups-from shop",
    ),
    "groups in a file that is none": Case(
        f"{LEARN} --model nmf --groups-from g.csv",
        "not a CSV with the columns user_id, group, position: write it so",
        f"{LEARN} --model nmf --groups-from g.csv",
        {"g.csv": "who,where\nann,1\n"},
        {"g.csv": "user_id,group,position\nann,x,0\nbob,x,0\ncat,y,1\ndan,y,1\n"},
    ),
    "a user without a position": Case(
        f"{LEARN} --model nmf --groups-from g.csv",
        "give each a whole number from 0",
        f"{LEARN} --model nmf --groups-from g.csv",
        {"g.csv": "user_id,group,position\nann,x,-1\nbob,x,0\ncat,y,1\ndan,y,1\n"},
        {"g.csv": "user_id,group,position\nann,x,0\nbob,x,0\ncat,y,1\ndan,y,1\n"},
    ),
    "a user without a group": Case(
        f"{LEARN} --model nmf --groups-from g.csv",
        "1 of the 4 users of the data have no group there: add them",
        f"{LEARN} --model nmf --groups-from g.csv",
        {"g.csv": "user_id,group,position\nann,x,0\nbob,x,0\ncat,y,1\n"},
        {"g.csv": "user_id,group,position\nann,x,0\nbob,x,0\ncat,y,1\ndan,y,1\n"},
    ),
    "groups of another, under regroup": Case(
        f"{LEARN} --model nmf --policy regroup --groups-from shop",
        "leave out --groups-from",
        f"{LEARN} --model nmf --policy regroup --groups 2",
    ),
    "the catalogue of a workspace whose items follow the people": Case(
        f"{LEARN} --catalogue shop", "give --catalogue FILE", f"{LEARN} --catalogue items", {}, {"items": "a\nb\nc\n"}
    ),
    "an item that is not in the catalogue": Case(
        f"{LEARN} --catalogue items",
        "add it there and give --catalogue",
        f"{LEARN} --catalogue items",
        {"items": "a\nb\n"},
        {"items": "a\nb\nc\n"},
    ),
    "more, an item that is not in the catalogue": Case(
        "learn --more m.csv --into declared",
        "add it there and give --catalogue",
        "learn --more m.csv --into declared --catalogue items",
        {"m.csv": "user_id,item_id,rating\nzoe,new,5\n"},
        {"items": "a\nb\nc\nnew\n"},
        before=learn_a_catalogue,
    ),
    "more, with a catalogue where items follow the people": Case(
        f"{MORE} --catalogue items",
        "leave it out",
        MORE,
        {"m.csv": "user_id,item_id,rating\nzoe,a,5\n", "items": "a\nb\nc\n"},
    ),
    "more, with a setting": Case(
        f"{MORE} --groups 2", "leave out --groups", MORE, {"m.csv": "user_id,item_id,rating\nzoe,a,5\n"}
    ),
    "more, with groups of another": Case(
        f"{MORE} --groups-from shop", "leave out --groups-from", MORE, {"m.csv": "user_id,item_id,rating\nzoe,a,5\n"}
    ),
    "more, while an erasure is not finished": Case(
        MORE,
        "finish it with erasable forget shop --resume",
        "forget shop --resume",
        {"m.csv": "user_id,item_id,rating\nzoe,a,5\n"},
        before=stop_before_the_certificate,
    ),
    "a workspace that is there": Case(
        "learn r.csv --into shop", "give another folder, or delete that one first", "learn r.csv --into another"
    ),
    "a folder that is not": Case(
        "recommend 'my shop' --all",
        "make one with erasable learn DATA --into 'my shop'",
        "learn r.csv --into 'my shop' --model als",
    ),
    # asking
    "for whom": Case("recommend shop", "--all or --history", "recommend shop --all"),
    "recommend to someone unknown": Case(
        "recommend shop --user zoe", "give --fallback popular", "recommend shop --user zoe --fallback popular"
    ),
    "a file of no known kind": Case(
        "recommend shop --all --out x.txt", "ends in .csv, .parquet, .arrow, .json", "recommend shop --all --out x.json"
    ),
    "recommend an unknown item": Case(
        "recommend shop --all --items a,zz",
        "or give --available FILE",
        "recommend shop --all --available stock.txt",
        {"stock.txt": "a\nzz\n"},
    ),
    "a filter without attributes": Case(
        "recommend shop --all --where 'price < 3'",
        "give them with erasable items DIR --set FILE",
        "items shop --set items.csv",
        {"items.csv": "item_id,price\na,1\n"},
    ),
    "scores of no item": Case(
        "recommend shop --user ann --scores", "name at least one item", "recommend shop --user ann --items a --scores"
    ),
    "a file in the workspace": Case(
        "recommend shop --all --out shop/x.csv", "give --out a file elsewhere", "recommend shop --all --out x.csv"
    ),
    "evaluate without a holdout": Case(
        "evaluate shop", "give --test FILE", "evaluate shop --test t.csv", {"t.csv": "user,item\nann,c\nbob,c\n"}
    ),
    "evaluate without a holdout, learned with one": Case(
        "evaluate shop", "learn with --holdout 0.1", "learn r.csv --into other --model als --holdout 0.4"
    ),
    "a split by time without times": Case(
        f"{LEARN} --split leave-last-out",
        "name their column with --time-column",
        f"{LEARN} --split leave-last-out --time-column bought",
        {"r.csv": "user_id,item_id,bought\nann,a,1\nann,b,2\nbob,a,5\n"},
    ),
    "a number for a split by dates": Case(
        f"{LEARN} --split-time 2026",
        "write --split-time as a date",
        f"{LEARN} --split-time 2026-01-01",
        {"r.csv": "user_id,item_id,time\nann,a,2025-03-01\nann,b,2026-03-01\nbob,a,2025-03-01\n"},
    ),
    "a split by time without a date": Case(
        f"{LEARN} --split time",
        "give --split-time",
        f"{LEARN} --split-time 3",
        {"r.csv": "user_id,item_id,time\nann,a,1\nann,b,2\nbob,a,5\n"},
    ),
    "a share of a split that has none": Case(
        f"{LEARN} --split leave-last-out --holdout 0.1",
        "leave out --holdout",
        f"{LEARN} --split leave-last-out",
        {"r.csv": "user_id,item_id,time\nann,a,1\nann,b,2\nbob,a,5\n"},
    ),
    "no rating is high": Case(
        "evaluate shop --protocol held-out-only --test t.csv",
        "with --rating-column",
        "evaluate shop --protocol held-out-only --test t.csv --rating-column stars",
        {"t.csv": "user,item,rating,stars\nann,c,1,5\nbob,c,1,4\nbob,b,1,2\nann,d,1,1\n"},
    ),
    "a figure of no known kind": Case(
        "groups shop --plot x.gif", "ends in .png, .svg or .pdf: name it so", "groups shop --plot x.svg"
    ),
    "random, and named": Case("plan shop --random 2 --user ann", "leave out --user", "plan shop --random 2"),
    "more at random than there are": Case(
        "plan shop --random 99", "give --random a smaller number", "plan shop --random 2"
    ),
    # forgetting
    "who": Case("forget shop", "give --user U", "forget shop --user ann"),
    "an item of nobody": Case(
        "forget shop --item a", "exactly one --user: give one", "forget shop --item a --user ann"
    ),
    "items without a user in a file": Case(
        "forget shop --users-file who.csv",
        "leave out the item column",
        "forget shop --users-file who.csv",
        {"who.csv": "user_id,item_id\nann,\n"},
        {"who.csv": "user_id\nann\n"},
    ),
    "a file with another column": Case(
        "forget shop --users-file who.csv",
        "give user_id or user_id,item_id",
        "forget shop --users-file who.csv",
        {"who.csv": "user_id,why\nann,asked\n"},
        {"who.csv": "user_id,item_id\nann,a\n"},
    ),
    "an item that the person does not have": Case(
        "forget shop --user ann --item zzz", "check its id", "forget shop --user ann --item a"
    ),
    "receipts in the workspace": Case(
        "forget shop --user ann --receipts shop/r", "give another folder", "forget shop --user ann --receipts r"
    ),
    "something is left": Case(
        f"forget shop --user {LONG}",
        "Remove them, then run: erasable forget shop --resume",
        "forget shop --resume",
        {"shop/notes.txt": f"call {LONG}"},
        {"shop/notes.txt": None},
    ),
    # after an update
    "forget what was learned elsewhere": Case(
        "forget shop --user ann",
        "bring it here with erasable upgrade shop and forget then",
        "upgrade shop",
        before=move_elsewhere,
    ),
    "forget what was learned elsewhere, at once": Case(
        "forget shop --user ann", "or give --rerun", "forget shop --user ann --rerun", before=move_elsewhere
    ),
    "more, learned elsewhere": Case(
        MORE,
        "bring it here with erasable upgrade shop, then learn more",
        "upgrade shop",
        {"m.csv": "user_id,item_id,rating\nzoe,a,5\n"},
        before=move_elsewhere,
    ),
    "upgrade before certificates": Case(
        "upgrade shop",
        "finish it with erasable forget shop --resume, then upgrade",
        "forget shop --resume",
        {"shop/notes.txt": f"call {LONG}"},
        {"shop/notes.txt": None},
        before=move_elsewhere_before_the_certificate,
    ),
    # proving
    "a receipt alone": Case(
        "verify twin --receipt twin.json",
        "--receipt needs --certificate",
        "verify twin --certificate twin.json",
        before=learn_a_twin,
    ),
    "a page": Case(
        "verify twin --certificate twin.html",
        "give the .json file",
        "verify twin --certificate twin.json",
        before=learn_a_twin,
    ),
    "a certificate of another workspace": Case(
        "verify shop --certificate twin.json",
        "name the folder that it is of",
        "verify twin --certificate twin.json",
        before=learn_a_twin,
    ),
    "scan with data of others": Case(
        "scan shop --user zoe --data r.csv", "or leave out --data", "scan shop --user zoe"
    ),
    # the rest
    "no such data set": Case("data get nothing", "give one of", "data get --help"),
    "made-up data in place of a file": Case("data make r.csv", "give another name", "data make made.csv"),
    "made-up data without an ending": Case("data make made", "or give --files 8", "data make made --files 8"),
    "more rows than people have items": Case(
        "data make made.csv --users 9 --items 3 --interactions 99",
        "give at most 27 --interactions",
        "data make made.csv --users 9 --items 3 --interactions 27",
    ),
    "half of what a probe needs": Case(
        "attack shop --data r.csv", "give both, or neither to forget", "attack shop --help"
    ),
}


def run(command: str) -> tuple[int, str]:
    """Run a command as it would be typed, and return how it ended and all that it said."""
    said, code, words = io.StringIO(), 0, sys.argv
    sys.argv = ["erasable", *shlex.split(command)]
    try:
        with redirect_stdout(said), redirect_stderr(said):
            main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = words
    return code, said.getvalue()


def write(files: dict[str, str | bytes | None]) -> None:
    """Write files, or remove them."""
    for name, content in files.items():
        if content is None:
            Path(name).unlink()
        else:
            Path(name).write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture(scope="session")
def learned(tmp_path_factory):
    """A workspace that is learned once, and copied for each case."""
    folder = tmp_path_factory.mktemp("remedies")
    (folder / "all.csv").write_text(SMALL + f"{LONG},a,1\n{LONG},b,5\n")
    assert run(f"learn {folder}/all.csv --into {folder}/shop --model als")[0] == 0
    return folder / "shop"


@pytest.fixture
def here(learned, tmp_path, monkeypatch):
    """A folder with a small file and a workspace."""
    copy_of(learned, tmp_path / "shop")
    (tmp_path / "r.csv").write_text(SMALL)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_the_remedy_works(here, name):
    case = CASES[name]
    write(dict(case.files))
    if case.before is not None:
        case.before()
    code, said = run(case.command)
    assert code in (1, 2), said
    assert case.said in " ".join(said.split())
    write(case.meanwhile)
    code, said = run(case.remedy)
    assert code == 0, said


def options_of(command: click.Command) -> set[str]:
    """Return every option of a command and of its subcommands."""
    own = {name for parameter in command.params for name in parameter.opts}
    return own.union(*(options_of(below) for below in getattr(command, "commands", {}).values()))


def test_every_option_that_is_named_is_there():
    options = options_of(typer.main.get_command(make_app()))
    nodes = [
        (path.name, node)
        for path in Path(erasable.__file__).parent.rglob("*.py")
        if path.name != "page_style.py"  # whose variables begin alike
        for node in ast.walk(ast.parse(path.read_text()))
    ]
    named = {
        (file, option)
        for file, node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", node.value)
    }
    called = [(file, node) for file, node in nodes if isinstance(node, ast.Call) and node.args]
    named |= {
        (file, "--" + node.args[0].value.replace("_", "-"))
        for file, node in called
        if getattr(node.func, "id", "") == "option" and isinstance(node.args[0], ast.Constant)
    }
    assert len(named) > 100
    assert {place for place in named if place[1] not in options} <= {("main.py", "--help")}
