"""The documentation says what is true: commands, options, settings, links and examples."""

import importlib.util
import inspect
import json
import re
import shlex
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from typer.testing import CliRunner

from erasable.chain.settings import settings_classes
from erasable.checked_settings import sentences_of
from erasable.cli.main import make_app
from erasable.cli.options import CONFIG_OPTIONS
from erasable.models import Amends, Explains, Model, Prepares, Probabilities, Subtracts, TellsSimilarItems

ROOT = Path(__file__).parent.parent
WRITTEN = (page for page in ROOT.glob("docs/**/*.md") if "_build" not in page.parts)
PAGES = sorted([*ROOT.glob("*.md"), *WRITTEN, *ROOT.glob("benchmarks/*.md")])
app = make_app()
NAMES = [command.name for command in app.registered_commands if not command.hidden] + [
    name
    for group in app.registered_groups
    for name in (group.name, *(f"{group.name} {command.name}" for command in group.typer_instance.registered_commands))
]


def name_in(words: list[str]) -> str:
    """Return the command that words begin with, of one word or of two."""
    return " ".join(words[:2]) if " ".join(words[:2]) in NAMES else words[0]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def joined(block: str) -> list[str]:
    return re.sub(r" *\\\n *", " ", block).splitlines()


def commands_in(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "(?:bash|sh|console)") for line in joined(block)]
    return [line.removeprefix("$ ").split(" #")[0] for line in lines if "erasable " in line.split("#")[0]]


def written_reference() -> str:
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "docs" / "make_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.reference()


def test_the_reference_is_current(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8") == written_reference(), (
        "run scripts/reference"
    )


@pytest.mark.parametrize(
    ("owner", "name"), [(owner, name) for owner, kind in settings_classes().items() for name in kind.model_fields]
)
def test_every_setting_has_a_sentence_and_an_option(owner, name):
    assert len(sentences_of(settings_classes()[owner])[name]) > 10
    assert name in CONFIG_OPTIONS


@pytest.mark.parametrize("name", NAMES)
def test_every_option_of_a_command_has_a_sentence(name):
    text = CliRunner().invoke(app, [*name.split(), "--help"]).output
    options = re.split(r"\n  (?=-)", text.split("Options:")[1])[1:]
    assert options
    for option in options:
        assert re.search(r"[A-Z][\w',;:() -]{8,}", option), f"{name}: no sentence for {option!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
class TestEveryPage:
    def test_links_lead_somewhere(self, page):
        targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
        for target in targets:
            assert target.startswith("http") or (page.parent / target).exists(), target

    def test_commands_exist_with_the_options_shown(self, page):
        for line in commands_in(page):
            words = shlex.split(line)
            words = words[next(place for place, word in enumerate(words) if word.endswith("erasable")) + 1 :]
            name = name_in(words)
            assert name in NAMES or name.startswith("-"), line
            help_text = CliRunner().invoke(app, [*name.split(), "--help"]).output if name in NAMES else "--version"
            for word in words[1:]:
                if word.startswith("--"):
                    assert re.search(rf"{word}\b", help_text), f"{line}: {word}"

    def test_names_no_machine_and_no_registry(self, page):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"/(storage|root|work|tmp)/|pypi\.org/simple|localhost:\d+", text)


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")
    names: dict[str, object] = {}
    examples = blocks(ROOT / "README.md", "python")
    assert examples
    for example in examples:
        exec(compile(example, "README.md", "exec"), names)


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Path:
    """A folder to run the pages' Python in: ratings.csv, a workspace that has forgotten user 42."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{user},{item},{1 + (user + item) % 5}" for user in (7, 42, 51, 60) for item in range(user % 4, 8)]
    Path("ratings.csv").write_text("\n".join(["user_id,item_id,rating", *rows]) + "\n")
    learned = CliRunner().invoke(
        app, ["learn", "ratings.csv", "--into", "shop", "--model", "nmf", "--groups", "2", "--epochs", "1"]
    )
    forgotten = CliRunner().invoke(app, ["forget", "shop", "--user", "42", "--receipts", "receipts"])
    assert (learned.exit_code, forgotten.exit_code) == (0, 0)
    return tmp_path


def run_python(page: str) -> dict:
    names: dict = {}
    for example in blocks(ROOT / "docs" / page, "python"):
        exec(compile(example, page, "exec"), names)
    return names


def test_an_outsider_can_check_a_certificate_as_the_page_says(shop):
    names = run_python("explanations/proof.md")
    (certificate,) = shop.glob("shop/certificates/*.json")
    key = json.loads(CliRunner().invoke(app, ["status", "shop", "--json"]).output)["public_key"]
    fields = names["check"](certificate, key)
    receipt = json.loads((shop / "receipts" / certificate.name).read_text())
    assert names["is_mine"](fields, receipt)
    assert not names["is_mine"](fields, receipt | {"user_id": "43"})
    with pytest.raises(InvalidSignature):
        names["check"](certificate, "00" * 32)
    certificate.write_text(certificate.read_text().replace('"policy":"fixed"', '"policy":"regroup"'))
    with pytest.raises(InvalidSignature):
        names["check"](certificate, key)


def test_rows_to_delete_are_found_as_the_page_on_the_do_not_learn_list_says(shop, capsys):
    run_python("how-to/do-not-learn.md")
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == {"42"}


def test_the_python_of_the_page_on_the_library_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_python("how-to/use-the-library.md")
    assert names["found"]["user_id"].to_pylist()[0] == "ann@x.org"
    assert set(names["everyone"]["item_id"]) <= {101, 102, 103, 104}
    assert names["alike"].num_rows == 2
    assert (names["rec"].status()["users"], names["shop"].status()["users"]) == (2, 2)


def test_what_the_page_on_models_quotes_stands_in_the_example_and_the_rest_runs(shop, monkeypatch):
    page, example = ROOT / "docs" / "how-to" / "add-a-model.md", ROOT / "examples" / "own-model"
    files = [example / "src" / "own_model.py", example / "tests" / "test_own_model.py", example / "pyproject.toml"]
    texts = [file.read_text(encoding="utf-8") for file in files]
    quoted = [*blocks(page, "python"), *blocks(page, "toml")]
    assert len(quoted) >= 9
    (run,) = [block for block in quoted if not any(block in text for text in texts)]
    monkeypatch.syspath_prepend(example / "src")
    names: dict = {}
    exec(compile(run, page.name, "exec"), names)
    assert names["found"].num_rows == 3


def test_the_page_on_models_has_every_method_as_it_is_called():
    page = (ROOT / "docs" / "how-to" / "add-a-model.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\|.*?`(\w+)\(([\w, ]+)\)` \|", page, re.MULTILINE))
    kinds = (Prepares, Probabilities, TellsSimilarItems, Explains, Amends, Subtracts)
    methods = {name: getattr(kind, name) for kind in kinds for name in vars(kind) if not name.startswith("_")}
    methods |= {name: getattr(Model, name) for name in ("samples", "extended", "newcomers")}
    assert rows == {name: ", ".join([*inspect.signature(one).parameters][1:]) for name, one in methods.items()}
