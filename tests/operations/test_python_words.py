"""Whatever the library says, it says in Python's words: a remedy is something to write in Python."""

import ast
import re
from pathlib import Path

import pyarrow as pa
import pytest

import erasable
from erasable import ErasableError, Inputs, Outside, Recommender, Suppression
from erasable.operations.erasure import accept
from erasable.operations.python_words import in_python, speaking_python
from erasable.proof import NOTHING_PENDING
from erasable.unlearning import Request

USERS, ITEMS = [1, 1, 2, 2, 3], ["a", "b", "a", "c", "b"]
COMMAND = re.compile(r"(?<!\w)--[a-z]|\berasable (learn|forget|recommend|plan|verify|evaluate|scan)\b")


def table(**columns) -> pa.Table:
    return pa.table({"user": USERS, "item": ITEMS, **columns})


def fitted(**settings) -> Recommender:
    return Recommender(**{"model": "ease", "regularisation": 1, **settings}).fit(table())


def unfinished() -> Recommender:
    """A recommender whose erasure was interrupted."""
    recommender = fitted()
    with recommender._home.writing() as session:
        accept(session, NOTHING_PENDING.joined_with([Request("1")]))
    return recommender


def listed(folder: Path) -> Suppression:
    return Suppression(folder / "list.json", folder / "key")


CASES = {
    "a wrong column": (lambda _: Recommender().fit(table(), item="sku"), "with fit(…, item='NAME')"),
    "no column": (lambda _: Recommender().fit(pa.table({"a": [1], "b": [2]})), "with fit(…, user='NAME')"),
    "no column, more": (lambda _: fitted().learn_more(pa.table({"x": [1]})), "with learn_more(…, user='NAME')"),
    "no column, test": (lambda _: fitted().evaluate(pa.table({"x": [1]})), "with evaluate(…, user='NAME')"),
    "a file without names": (
        lambda folder: Recommender().fit(folder / "plain.csv", user="who", item="what"),
        "give fit(…, user=NUMBER), a number from 1 to 2",
    ),
    "a bad row": (
        lambda _: Recommender().fit(table(rating=[1.0, None, 1.0, 1.0, 1.0])),
        "to leave bad rows out give fit(…, on_bad_row='skip')",
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
    "no risk": (lambda _: Recommender(anchors=0.5, risk_threshold=1).fit(table()), "risk= and risk_threshold="),
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
        "give fit(…, catalogue=FILE)",
    ),
    "no rating": (
        lambda _: Recommender(model="ease").fit(table(rating=[1, 2, 3, 4, 5])).learn_more(table()),
        "name one with learn_more(…, rating='NAME')",
    ),
    "nobody to readmit": (
        lambda _: fitted().learn_more(table(), readmit=9),
        "check it, or leave out readmit",
    ),
    "no holdout": (lambda _: fitted().evaluate(), "learn with holdout=0.1, or give evaluate(TABLE)"),
    "nobody known": (lambda _: fitted().evaluate(pa.table({"user": [9], "item": ["a"]})), "learn with holdout=0.1"),
    "unknown": (lambda _: fitted().recommend(9), "give unknown='skip' or 'popular'"),
    "an unknown item": (lambda _: fitted().similar_items("z"), "no item 'z'"),
    "a model without": (
        lambda _: Recommender(model="nmf", groups=2, epochs=1).fit(table()).similar_items("a"),
        "learn with one of the models als and ease",
    ),
    "unfinished, more": (lambda _: unfinished().learn_more(table()), "finish it with forget([]), then"),
    "unfinished, saved": (lambda folder: unfinished().save(folder / "x"), "finish it with forget([])"),
    "list and key together": (
        lambda folder: fitted().forget(1, outside=Outside(suppression=listed(folder))),
        "keep the key apart",
    ),
    "no such list": (
        lambda folder: Recommender().fit(
            table(), Inputs(suppression=Suppression(folder / "gone", folder / "k" / "key"))
        ),
        "inputs=Inputs(suppression=Suppression(Path(LIST), Path(KEY)))",
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


def messages() -> dict[str, str]:
    """Return whatever the package may say, places left open, but for what only a command or the service says."""
    root, found = Path(erasable.__file__).parent, {}
    for path in root.rglob("*.py"):
        if path.relative_to(root).parts[0] in ("cli", "service", "experiments") or path.name == "python_words.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr | ast.Constant):
                parts = node.values if isinstance(node, ast.JoinedStr) else [node]
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "item" for part in parts)
                found[text] = path.name
    return found


def test_no_option_of_the_command_is_left_in_anything_the_library_could_say():
    named = [text for text, file in messages().items() if COMMAND.search(text) and file != "page_style.py"]
    assert len(named) > 80
    assert [text for text in named if re.search(r"(?<!\w)--[a-z]", in_python(text))] == []


@pytest.mark.parametrize("text", ["nothing is held about the user '--item-column'", "data--new/x.csv: empty", "a -- b"])
def test_ids_and_paths_stay_as_they_are(text):
    assert in_python(text) == text


def test_an_error_stays_what_it_was():
    @speaking_python
    def fail():
        raise erasable.BadRows("give --rating-scale LOW HIGH", off_scale=True)

    with pytest.raises(erasable.BadRows, match=r"^give rating_scale=\(LOW, HIGH\)$") as refused:
        fail()
    assert refused.value.off_scale is True
