"""Whatever the library says, it says in Python's words: a remedy is something to write in Python."""

import ast
import pickle
import re
from pathlib import Path

import pyarrow as pa
import pytest

import erasable
from erasable import DoNotLearnFiles, ErasableError, Inputs, Outside, Recommender
from erasable.requests import Request
from kit.asking import submit

USERS, ITEMS = [1, 1, 2, 2, 3], ["a", "b", "a", "c", "b"]
COMMAND = re.compile(r"(?<!\w)--[a-z]|\berasable (learn|forget|recommend|plan|verify|evaluate|scan)\b")


def table(**columns) -> pa.Table:
    return pa.table({"user": USERS, "item": ITEMS, **columns})


def fitted(**settings) -> Recommender:
    return Recommender(**{"model": "ease", "regularisation": 1, **settings}).fit(table())


def unfinished() -> Recommender:
    """A recommender whose erasure was interrupted."""
    recommender = fitted()
    submit(recommender._storage, Request("1"))
    return recommender


def listed(folder: Path) -> DoNotLearnFiles:
    return DoNotLearnFiles(folder / "list.json", folder / "key")


CASES = {
    "a wrong column": (lambda _: Recommender().fit(table(), item="sku"), "with item='NAME'"),
    "no column": (lambda _: Recommender().fit(pa.table({"a": [1], "b": [2]})), "with user='NAME'"),
    "no column, more": (lambda _: fitted().learn_more(pa.table({"x": [1]})), "with user='NAME'"),
    "no column, test": (lambda _: fitted().evaluate(pa.table({"x": [1]})), "with user='NAME'"),
    "a file without names": (
        lambda folder: Recommender().fit(folder / "plain.csv", user="who", item="what"),
        "give user=NUMBER, a number from 1 to 2",
    ),
    "a bad row": (
        lambda _: Recommender().fit(table(rating=[1.0, None, 1.0, 1.0, 1.0])),
        "to leave bad rows out give on_bad_row='skip'",
    ),
    "off the scale": (
        lambda _: Recommender(rating_scale=(1, 5)).fit(table(rating=[1, 2, 3, 4, 9])),
        "for another scale give rating_scale=(LOW, HIGH)",
    ),
    "no scale": (lambda _: Recommender().fit(table(rating=[1, 2, 3, 4, 99])), "with rating_scale=(LOW, HIGH)"),
    "a wrong scale": (lambda _: fitted(rating_scale=(5, 1)), "rating_scale needs LOW HIGH"),
    "a wrong setting": (lambda _: Recommender(groups=0), "groups"),
    "a wrong share": (lambda _: Recommender(holdout=2), "holdout"),
    "too many groups": (lambda _: Recommender(model="nmf", groups=9).fit(table()), "give groups=3 or fewer"),
    "no risk": (
        lambda _: Recommender(anchors=0.5, risk_threshold=1).fit(table()),
        "risk='NAME' and risk_threshold need each other",
    ),
    "no groups": (
        lambda _: Recommender(model="nmf", grouping="given").fit(table()),
        "grouping='given' needs groups_from",
    ),
    "groups anew": (
        lambda _: Recommender(model="nmf", policy="regroup").fit(table(), groups_from="x.csv"),
        "no such file: give groups_from a CSV or a workspace",
    ),
    "an item beside the catalogue": (
        lambda folder: Recommender().fit(table(), catalogue=folder / "items.txt"),
        "give catalogue=FILE",
    ),
    "no rating": (
        lambda _: Recommender(model="ease").fit(table(rating=[1, 2, 3, 4, 5])).learn_more(table()),
        "name one with rating='NAME'",
    ),
    "nobody to readmit": (
        lambda _: fitted().learn_more(table(), readmit=9),
        "check it, or leave out readmit",
    ),
    "no holdout": (lambda _: fitted().evaluate(), "learn with holdout=0.1, or give evaluate(TABLE)"),
    "nobody known": (lambda _: fitted().evaluate(pa.table({"user": [9], "item": ["a"]})), "learn with holdout=0.1"),
    "unknown": (lambda _: fitted().recommend(9), "give unknown='skip' or 'popular'"),
    "an unknown item": (lambda _: fitted().similar_items("z"), "no item 'z'"),
    "an unknown item to recommend": (
        lambda _: fitted().recommend(1, items=["z"]),
        "or give available, which passes over",
    ),
    "no whole number of items": (lambda _: fitted().recommend(1, k=2.5), "give k of 1 or more, a whole number"),
    "a filter that is no text": (lambda _: fitted().recommend(1, where=5), "where: 5 is no text: write it like"),
    "a rating that is no number": (lambda _: fitted().recommend(history={"a": "high"}), "give one for each item"),
    "a rating that is too large": (lambda _: fitted().recommend(history={"a": 10**400}), "give one for each item"),
    "nobody to score for": (lambda _: fitted().score(None, "a"), "give users, or None and a history"),
    "a model that does not explain": (
        lambda _: Recommender(model="als", factors=2).fit(table()).explain(1, "a"),
        "learn with the model ease",
    ),
    "explained to nobody": (lambda _: fitted().explain(9, "a"), "nothing is held about the user '9': check the id"),
    "unfinished, more": (lambda _: unfinished().learn_more(table()), "finish it with forget([]), then"),
    "unfinished, saved": (lambda folder: unfinished().save(folder / "x"), "finish it with forget([])"),
    "list and key together": (
        lambda folder: fitted().forget(1, outside=Outside(do_not_learn=listed(folder))),
        "keep the key apart",
    ),
    "no such list": (
        lambda folder: Recommender().fit(
            table(), Inputs(do_not_learn=DoNotLearnFiles(folder / "gone", folder / "k" / "key"))
        ),
        "do_not_learn=DoNotLearnFiles(Path(LIST), Path(KEY)) in Inputs or Outside",
    ),
    "no folder": (
        lambda folder: Recommender.load(folder / "no shop"),
        "make one with Recommender().fit(DATA).save('",
    ),
    "no workspace": (lambda folder: Recommender.load(folder), "give a folder that save made"),
    "no threads": (lambda _: Recommender(threads=0), "give 1 or more"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_names_a_remedy_in_python(tmp_path, name):
    call, remedy = CASES[name]
    (tmp_path / "plain.csv").write_text("1,7\n2,8\n")
    (tmp_path / "items.txt").write_text("a\nb\n")
    (tmp_path / "k").mkdir()
    (tmp_path / "k" / "key").write_text("0" * 64)
    with pytest.raises(ErasableError) as refused:
        call(tmp_path)
    assert remedy in str(refused.value)
    assert not COMMAND.search(str(refused.value))


def test_what_verify_says_is_in_pythons_words_too():
    assert unfinished().verify().reason.endswith("finish it with forget([])")


ROOT = Path(erasable.__file__).parent
FILES = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if path.relative_to(ROOT).parts[0] not in ("cli", "service", "paper", "testing", "plots.py")
    and path.name not in ("issuing.py", "wording.py", "_folder.py", "__main__.py", "public_sets.py")
]


def in_both_words(tree: ast.AST) -> set[ast.AST]:
    """Return all that stands within a call of `Said`, whose second part is the command's."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Said"]
    return {part for call in calls for argument in call.args[1:] for part in ast.walk(argument)}


def docstrings(tree: ast.AST) -> set[ast.AST]:
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def test_the_command_is_named_in_python_code_only_where_both_wordings_stand():
    assert len(FILES) > 100
    found, apart = [], []
    for path in FILES:
        tree = ast.parse(path.read_text())
        command, said = in_both_words(tree), docstrings(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and COMMAND.search(node.value):
                if node in command:
                    found.append(node.value)
                elif node not in said:
                    apart.append((path.name, node.value))
    assert len(found) > 10
    assert apart == []


def test_what_has_two_wordings_is_put_into_no_f_string_which_would_lose_one():
    lost = []
    for path in FILES:
        tree = ast.parse(path.read_text())
        made = {
            target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            if getattr(node.value.func, "id", "") in ("Said", "said", "option")
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for value in (node.value for node in ast.walk(tree) if isinstance(node, ast.FormattedValue)):
            called = {getattr(part.func, "id", "") for part in ast.walk(value) if isinstance(part, ast.Call)}
            named = {getattr(value, "id", "")} & made
            if named or called & {"Said", "said", "option", "column_option", "upgrading", "resuming"}:
                lost.append((path.name, ast.unparse(value)))
    assert lost == []


@pytest.mark.parametrize("user", ["--item-column", "`groups`", "erasable learn DATA --into x"])
def test_ids_stay_as_they_are_in_both_wordings(user):
    with pytest.raises(ErasableError) as refused:
        fitted().recommend(user)
    assert repr(user) in str(refused.value)
    assert repr(user) in refused.value.of_command


def test_an_error_says_the_same_to_whoever_runs_a_command():
    with pytest.raises(erasable.Refused) as refused:
        fitted().evaluate()
    assert str(refused.value) == "nothing was held out: learn with holdout=0.1, or give evaluate(TABLE)"
    assert refused.value.of_command == "nothing was held out: learn with --holdout 0.1, or give --test FILE"


def test_both_wordings_are_there_after_an_error_was_sent():
    with pytest.raises(erasable.Refused) as refused:
        fitted().evaluate()
    sent = pickle.loads(pickle.dumps(refused.value))
    assert (str(sent), sent.of_command) == (str(refused.value), refused.value.of_command)


def test_what_is_thrown_as_another_error_keeps_both():
    with pytest.raises(erasable.DataRefused) as refused:
        Recommender().fit(table(rating=[1.0, None, 1.0, 1.0, 1.0]))
    assert refused.value.of_command.endswith("to leave bad rows out give --on-bad-row skip")
