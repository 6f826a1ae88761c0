"""Reporting: an operation tells notes and how far it has come, to whoever listens."""

from erasable.operations import DiskHome, Work, forget, learn, plan, recommend, verify
from erasable.operations.learn import samples_of
from erasable.operations.reporting import SILENT, Silent
from erasable.unlearning import Request


def test_learning_tells_how_the_input_was_understood_and_every_sample(table, config, reporter, tmp_path):
    learn(table, tmp_path / "shop", config, work=Work(2, reporter))
    assert reporter.notes == ["a Table; user_id, item_id, rating", "rating scale 1–5"]
    with DiskHome(tmp_path / "shop").reading() as session:
        samples = samples_of(session.state().knowledge)
    assert reporter.work == [
        ("reading", None),
        ("looking for erased people", None),
        ("learning", samples),
        ("saving", None),
    ]
    assert reporter.done == samples > 0


def test_forgetting_tells_the_samples_that_were_planned(home, reporter):
    with home.reading() as session:
        user = session.state().knowledge.groups[1].users[0]
    planned = plan(home, [Request(user)])
    forget(home, [Request(user)], work=Work(1, reporter))
    assert reporter.work == [
        ("evaluating", None),
        ("forgetting", planned.samples),
        ("scanning", None),
        ("evaluating", None),
    ]
    assert reporter.notes == []
    assert reporter.done == planned.samples


def test_verifying_and_recommending_tell_how_far_they_are(home, reporter):
    verify(home, work=Work(1, reporter))
    assert reporter.done == reporter.work[0][1]
    recommend(home, ["ann", "bob"], work=Work(1, reporter))
    assert reporter.work[1] == ("recommending", 2)
    assert reporter.done == reporter.work[0][1] + 2


def test_silence_takes_everything(capsys):
    for silent in (SILENT, Silent()):
        silent.note("a note")
        with silent.track("work", 3) as advance:
            advance(3)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
