"""`--executor` and `--address`, which several commands share."""

import pytest

from erasable.operations import _ray


@pytest.fixture(autouse=True)
def _with_ray(monkeypatch):
    monkeypatch.setattr(_ray, "find_spec", lambda name: name)


COMMANDS = {
    "learn": ("rows.csv", "--into", "new"),
    "forget": ("shop", "--user", "1"),
    "verify": ("shop",),
    "upgrade": ("shop",),
    "evaluate": ("shop",),
    "recommend": ("shop", "--all", "--out", "all.csv"),
    "scan": ("shop", "--user", "1"),
    "attack": ("shop",),
    "reproduce": ("utility", "--data", "rows.csv", "--out", "reports"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_cluster_that_does_not_answer_is_said_before_any_work(run, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(name, *COMMANDS[name], "--executor", "ray", "--address", "127.0.0.1:1")
    code, said = done.code, done.err
    assert code in (1, 2)
    assert "no Ray cluster answers at 127.0.0.1:1" in said
    assert list(tmp_path.iterdir()) == []


def test_an_address_needs_the_executor(run):
    done = run("verify", "shop", "--address", "127.0.0.1:1")
    code, said = done.code, done.err
    assert (code, said) == (2, "erasable: --address is that of a Ray cluster: give --executor ray too\n")


def test_recommending_to_some_needs_no_cluster(run, monkeypatch):
    monkeypatch.setattr(_ray, "_refuse_unreachable", lambda address: None)
    done = run("recommend", "shop", "--user", "1", "--executor", "ray", "--address", "127.0.0.1:1")
    code, said = done.code, done.err
    assert code == 2
    assert "--executor ray is for everyone" in said
