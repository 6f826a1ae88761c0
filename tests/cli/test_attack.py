"""`erasable attack`: attacks before and after forgetting, a table, a sentence and an exit code."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from erasable.chain import Config
from erasable.cli import attack as command
from erasable.data import ColumnNames, SyntheticSettings, synthesise
from erasable.errors import Refused, WrongUse
from erasable.evaluation.attack import LOOKS, AttackResult, Interval
from erasable.operations import learn
from erasable.operations.attack import Probe

app = typer.Typer(rich_markup_mode=None)
app.command(command.NAME)(command.command)
app.callback()(lambda: None)


def run(*words: object):
    return CliRunner().invoke(app, [command.NAME, *map(str, words)])


def refusal(*words: object) -> Exception | None:
    return run(*words).exception


def probe_of(verdict, rounds=1) -> Probe:
    areas = (
        Interval(0.9, 0.85, 0.95),
        Interval(0.51, 0.45, 0.57),
        Interval(0.5, 0.4, 0.6),
        Interval(0.01, -0.05, 0.07),
    )
    findings = tuple(AttackResult(*look, *areas, verdict) for look in LOOKS)
    return Probe(verdict, findings, people=100, others=90, seeds=5, rounds=rounds, pretended=True, seconds=1.5)


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    """A workspace that has hardly learned anything; to be read only."""
    folder = tmp_path_factory.mktemp("audited") / "shop"
    rows = synthesise(SyntheticSettings(users=40, items=30, groups=2, per_user=6)).interactions
    users, items = rows.users.texts(), rows.items.texts()
    pairs = zip(rows.user_index.tolist(), rows.item_index.tolist(), strict=True)
    file = folder.parent / "rows.csv"
    file.write_text("\n".join(["user_id,item_id", *(f"{users[u]},{items[i]}" for u, i in pairs)]), encoding="utf-8")
    learn(file, folder, Config(model="nmf", groups=2, epochs=1))
    return folder


@pytest.fixture
def heard(monkeypatch) -> list[tuple[object, ...]]:
    """What the operations are asked, instead of working."""
    asked: list[tuple[object, ...]] = []
    for name in ("attack", "attack_erased"):
        monkeypatch.setattr(
            command, name, lambda *given, name=name: asked.append((name, *given)) or probe_of("forgotten")
        )
    return asked


@pytest.mark.full
def test_json_is_the_whole_probe_and_the_exit_code_its_verdict(shop):
    result = run(shop, "--seeds", 3, "--threads", 1, "--json")
    found = json.loads(result.stdout)
    assert (found["people"], found["others"], found["seeds"], found["pretended"]) == (5, 5, 3, True)
    assert [(one["attack"], one["view"]) for one in found["findings"]] == list(LOOKS)
    # Nobody can be told apart after one epoch.
    assert (found["verdict"], result.exit_code) == ("worthless here", 3)
    assert set(found["findings"][0]["difference"]) == {"mean", "low", "high"}


@pytest.mark.parametrize(
    ("verdict", "code", "said"),
    [
        ("forgotten", 0, "4 attacks recognised 100 people before, none does after, as on models that never knew them"),
        (
            "remembers",
            1,
            "after forgetting, 100 people are still recognised better than by models that never knew them",
        ),
        ("worthless here", 3, "so nothing follows: give more --users or --seeds, and rely on verify"),
    ],
)
def test_the_verdict_ends_the_words_and_is_the_exit_code(shop, monkeypatch, verdict, code, said):
    monkeypatch.setattr(command, "attack", lambda *given: probe_of(verdict))
    result = run(shop)
    assert result.exit_code == code
    lines = result.stdout.splitlines()
    assert " ".join(lines[0].split()) == "attack looks at before after forgetting never knew them verdict"
    assert lines[1].startswith(
        "loss    as served          0.90 (0.85 to 0.95)  0.51 (0.45 to 0.57)  0.50 (0.40 to 0.60)"
    )
    assert [line.endswith(verdict) for line in lines[1:5]] == [True] * 4
    assert lines[5].startswith(f"{verdict}: ")
    assert lines[5].endswith(said)


def test_a_second_round_is_spoken_of(shop, monkeypatch):
    monkeypatch.setattr(command, "attack", lambda *given: probe_of("forgotten", rounds=2))
    assert "the first round said otherwise" in run(shop).stdout


def test_options_reach_the_operation(shop, heard):
    assert run(shop, "--users", 7, "--seeds", 4, "--threads", 3).exit_code == 0
    ((name, storage, users, seeds, work),) = heard
    assert (name, storage.path, users, seeds, work.threads) == ("attack", shop, 7, 4, 3)


class TestPeopleWhoWereErased:
    @pytest.fixture
    def names(self, tmp_path) -> Path:
        (tmp_path / "names.txt").write_text("ann\nbob\nann\n")
        return tmp_path / "names.txt"

    def test_they_come_from_a_file_and_their_rows_from_another(self, shop, heard, names, tmp_path):
        words = ("--data", tmp_path / "all.csv", "--users-file", names, "--user-column", "who")
        assert run(shop, *words).exit_code == 0
        ((name, storage, data, people, seeds, columns, _),) = heard
        assert (name, storage.path, data, people, seeds) == (
            "attack_erased",
            shop,
            str(tmp_path / "all.csv"),
            ["ann", "bob"],
            5,
        )
        assert columns == ColumnNames(user="who")

    def test_one_file_is_not_enough(self, shop, heard, names, tmp_path):
        for words in (("--data", tmp_path / "all.csv"), ("--users-file", names)):
            error = refusal(shop, *words)
            assert isinstance(error, WrongUse)
            assert "--data and --users-file belong together" in str(error)
        assert heard == []

    def test_a_number_of_people_makes_no_sense_with_names(self, shop, heard, names):
        error = refusal(shop, "--data", names, "--users-file", names, "--users", 5)
        assert isinstance(error, WrongUse)
        assert "leave out --users" in str(error)

    def test_single_interactions_are_not_probed(self, shop, heard, tmp_path):
        (tmp_path / "pairs.csv").write_text("user_id,item_id\nann,a\n")
        error = refusal(shop, "--data", tmp_path / "x.csv", "--users-file", tmp_path / "pairs.csv")
        assert isinstance(error, WrongUse)
        assert "the attack is on whole people" in str(error)


def test_a_plot_is_drawn_into_the_file_that_is_named(shop, heard, tmp_path):
    result = run(shop, "--plot", tmp_path / "probe.png")
    assert result.stdout.splitlines()[-1] == f"the figure is {tmp_path / 'probe.png'}"
    assert (tmp_path / "probe.png").read_bytes().startswith(b"\x89PNG")
    said = run(shop, "--plot", tmp_path / "probe.svg", "--json").stdout
    assert json.loads(said) == json.loads(json.dumps(asdict(probe_of("forgotten")))) | {
        "figure": str(tmp_path / "probe.svg")
    }


@pytest.mark.parametrize("name", ["probe.doc", "shop/probe.png"])
def test_a_plot_that_can_not_be_is_refused_before_any_work(shop, heard, tmp_path, name):
    place = shop.parent / name if name.startswith("shop") else tmp_path / name
    assert isinstance(refusal(shop, "--plot", place), WrongUse)
    assert heard == []


def test_too_few_people_are_refused_with_the_remedy(learned):
    error = refusal(learned)
    assert isinstance(error, Refused)
    assert str(error).startswith("there are only 8 users, too few to tell people apart: learn from 20 or more")


@pytest.mark.parametrize("seeds", ["2", "101", "many"])
def test_a_number_of_seeds_that_makes_no_sense_is_wrong_use(shop, heard, seeds):
    assert run(shop, "--seeds", seeds).exit_code == 2
    assert heard == []
