"""Verify: train everything again from what is left, and compare every byte."""

from dataclasses import dataclass
from pathlib import Path

from erasable.errors import WrongUse
from erasable.evaluation import compare, replay
from erasable.operations.home import Home, Session
from erasable.operations.learn import samples_of
from erasable.operations.work import QUIET_WORK, Work
from erasable.training import MemoryStore, State, differences


@dataclass(frozen=True)
class Verification:
    """Whether a replay gives the same bytes (None: can't be told here), and how many arrays were compared."""

    identical: bool | None
    compared: int
    reason: str


def verify(home: Home, certificate: Path | None = None, work: Work = QUIET_WORK) -> Verification:
    """Replay the whole chain from scratch on the data that is left and compare every array byte for byte."""
    with home.reading() as session:
        if certificate is not None and _content(certificate) not in session.issued().values():
            return Verification(False, 0, f"{certificate} is not a certificate of this workspace, or was changed")
        if session.leftovers:
            left = ", ".join(session.leftovers)
            return Verification(False, 0, f"files of an earlier version are left, remove them: {left}")
        found = differences(session.environment)
        if found:
            return Verification(None, 0, f"it was learned in another numeric environment: {'; '.join(found)}")
        state, checkpoints = _copied(session)
    with work.training("replaying", samples_of(state.knowledge)) as effort:
        replayed = replay(state, effort)
    comparison = compare(state, checkpoints, replayed)
    reason = comparison.difference or "a replay from scratch on the data that is left gives the same bytes"
    return Verification(comparison.identical, comparison.compared, reason)


def _content(certificate: Path) -> bytes:
    try:
        return certificate.read_bytes()
    except OSError:
        raise WrongUse(f"{certificate}: can't be read: give --certificate a file of the folder certificates") from None


def _copied(session: Session) -> tuple[State, MemoryStore]:
    """Load everything, so that a replay, which may take long, does not keep a writer waiting."""
    state = session.state()
    checkpoints = MemoryStore()
    for link in state.chain:
        checkpoints.put(session.checkpoints.get(link.fingerprint))
    for _ in state.knowledge.groups:
        pass
    return state, checkpoints
