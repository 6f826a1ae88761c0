"""Verify, in memory and on disk."""

import pytest

from erasable.errors import WrongUse
from erasable.operations import forget, verify
from erasable.training import Checkpoint
from erasable.unlearning import Request


def test_what_was_learned_and_what_was_forgotten_is_identical(home):
    first = verify(home)
    assert (first.identical, first.compared) == (True, 30)
    forget(home, [Request("bob"), Request("cat", ("b",))])
    assert verify(home) == first


def test_one_other_number_is_different(home):
    with home.writing() as session:
        state = session.state()
        old = session.checkpoints.get(state.chain[1].fingerprint)
        arrays = {name: array.copy() for name, array in old.arrays().items()}
        arrays["rows.user"][0, 0] += 1
        session.checkpoints.put(Checkpoint.from_arrays(old.fingerprint, old.parent, arrays))
        session.commit(state)
    found = verify(home)
    assert (found.identical, found.compared) == (False, 30)
    assert found.reason.startswith("stage 2: rows.user differs in 1 of ")


@pytest.mark.parametrize("home", ["memory"], indirect=True)
def test_another_environment_can_not_be_told(home):
    with home.reading() as session:
        session.environment["machine"] = "abacus"
    found = verify(home)
    assert (found.identical, found.compared) == (None, 0)
    assert "was abacus" in found.reason


def test_a_certificate_is_recognised_by_its_bytes(home, snapshot, tmp_path):
    forget(home, [Request("bob")])
    (content,) = snapshot(home).certificates.values()
    (tmp_path / "right.json").write_bytes(content)
    (tmp_path / "wrong.json").write_bytes(content + b" ")
    assert verify(home, tmp_path / "right.json").identical is True
    wrong = verify(home, tmp_path / "wrong.json")
    assert (wrong.identical, wrong.compared) == (False, 0)
    with pytest.raises(WrongUse, match="can't be read"):
        verify(home, tmp_path / "nowhere.json")
