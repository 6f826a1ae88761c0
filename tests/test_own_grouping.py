"""`docs/how-to/add-a-grouping.md` as its reader follows it: a package that registers a grouping, under each policy."""

import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from erasable import Laser, Recommender
from erasable.cli.main import main
from erasable.errors import NotReproducible, UnknownModel, WrongSetting
from erasable.workspace import Workspace
from kit.packages import installed

PAGE = (Path(__file__).parent.parent / "docs" / "how-to" / "add-a-grouping.md").read_text(encoding="utf-8")
USERS = [f"u{number}" for number in range(8)]


def block(language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder in which the page's package lies, and ratings: each user has one more than the one before."""
    (point,) = tomllib.loads(block("toml"))["project"]["entry-points"]["erasable.groupings"].items()
    assert point == ("by-activity", "own_grouping:by_activity")
    installed(tmp_path, "own_grouping", block("python"), groupings="by-activity=by_activity")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    rows = [f"{user},{item},{1 + (user + item) % 5}" for user in range(8) for item in range(user + 2)]
    Path("ratings.csv").write_text("\n".join(["user_id,item_id,rating", *(f"u{row}" for row in rows)]) + "\n")
    yield tmp_path
    sys.modules.pop("own_grouping", None)


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process; return its exit code and what it said."""

    def call(line: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", line.split())
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0), "".join(capsys.readouterr())
        return 0, "".join(capsys.readouterr())

    return call


def groups_in(folder):
    with Workspace.reading(folder) as workspace:
        return [sorted(group.users) for group in workspace.state().dataset.groups]


def learned(policy: str) -> Recommender:
    strategy = Laser(grouping="by-activity", groups=2, policy=policy)
    return Recommender("nmf", strategy, epochs=2, progress=False).fit("ratings.csv")


def uninstall(site, monkeypatch):
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(site)])
    sys.modules.pop("own_grouping", None)


def change(site):
    with (site / "own_grouping.py").open("a") as file:
        file.write("# changed\n")
    sys.modules.pop("own_grouping", None)


@pytest.mark.parametrize("policy", ["fixed", "regroup"])
def test_the_command_learns_forgets_and_verifies_with_it(site, run, policy):
    line = f"{block('bash').strip()} --epochs 2 --policy {policy}"
    assert run(line)[0] == 0
    assert groups_in("shop") == [USERS[:4], USERS[4:]]
    assert run("erasable status shop --json")[1].count('"by-activity"') == 1
    assert run("erasable forget shop --user u1 --user u2")[0] == 0
    kept = [["u0", "u3"], USERS[4:]] if policy == "fixed" else [["u0", "u3", "u4"], ["u5", "u6", "u7"]]
    assert groups_in("shop") == kept
    code, said = run("erasable verify shop")
    assert (code, said.startswith("identical")) == (0, True), said
    assert run("erasable scan shop --user u1")[0] == 0


@pytest.mark.parametrize("policy", ["fixed", "regroup"])
def test_forgetting_is_never_having_known(site, policy):
    recommender = learned(policy)
    recommender.save("shop")
    again = Recommender.load("shop")
    again.forget("u6")
    rows = Path("ratings.csv").read_text().splitlines()
    Path("ratings.csv").write_text("\n".join(row for row in rows if not row.startswith("u6")) + "\n")
    from_others = {"groups_from": "shop"} if policy == "fixed" else {}
    strategy = Laser(grouping="by-activity", groups=2, policy=policy)
    Recommender("nmf", strategy, epochs=2, progress=False).fit("ratings.csv", **from_others).save("other")
    assert groups_in("shop") == groups_in("other")
    with Workspace.reading("shop") as one, Workspace.reading("other") as other:
        for link, beside in zip(one.state().chain, other.state().chain, strict=True):
            ours, theirs = one.checkpoints.get(link.fingerprint), other.checkpoints.get(beside.fingerprint)
            assert link.fingerprint == beside.fingerprint
            for name, array in ours.parameters.shared.items():
                np.testing.assert_array_equal(array, theirs.parameters.shared[name])


def test_frozen_groups_need_no_package_and_no_unchanged_source(site, monkeypatch):
    learned("fixed").save("shop")
    change(site)
    assert Recommender.load("shop").verify().identical
    uninstall(site, monkeypatch)
    Recommender("nmf", epochs=2, progress=False).fit("ratings.csv", groups_from="shop").save("other")
    assert groups_in("other") == groups_in("shop") == [USERS[:4], USERS[4:]]
    loaded = Recommender.load("shop")
    loaded.forget("u2")
    assert loaded.verify().identical
    assert loaded.status()["grouping"] == "by-activity"
    with pytest.raises(WrongSetting, match="there is no grouping 'by-activity': choose one of"):
        Recommender("nmf", grouping="by-activity")


def test_groups_that_are_decided_anew_need_the_package(site, monkeypatch):
    learned("regroup").save("shop")
    uninstall(site, monkeypatch)
    loaded = Recommender.load("shop")
    assert loaded.status()["users"] == 8
    for call in (lambda: loaded.forget("u2"), loaded.verify, loaded.upgrade):
        with pytest.raises(UnknownModel, match=r"groups again.* no grouping 'by-activity'.*install the package"):
            call()
    assert loaded.status()["users"] == 8


def test_where_groups_are_decided_anew_changed_source_is_told_and_upgraded(site, run):
    learned("regroup").save("shop")
    change(site)
    loaded = Recommender.load("shop")
    with pytest.raises(NotReproducible, match=r"other code .the source files of the grouping have .*: bring .*upgrade"):
        loaded.forget("u2")
    code, said = run("erasable verify shop")
    assert code == 3
    assert "the source files of the grouping have changed since (erasable upgrade shop makes it again here)" in said
    assert "numeric environment" not in said
    assert run("erasable upgrade shop")[0] == 0
    assert loaded.verify().identical


def test_libraries_that_it_names_count_where_groups_are_decided_anew(site):
    (site / "own_grouping.py").write_text(block("python") + "\nby_activity.uses = ('threadpoolctl',)\n")
    sys.modules.pop("own_grouping", None)
    for policy, counted in (("regroup", True), ("fixed", False)):
        learned(policy).save(policy)
        with Workspace.reading(policy) as workspace:
            assert all(("threadpoolctl" in link.environment) == counted for link in workspace.state().chain)
            assert all(("grouping source" in link.environment) == counted for link in workspace.state().chain)
