"""What each operation writes into the audit chain."""

from dataclasses import replace
from importlib.metadata import version

from erasable.errors import WorkspaceError, said
from erasable.operations.home import Home
from erasable.operations.work import Work
from erasable.proof import add_record, data_digest, new_key, public_key_of, state_digest
from erasable.store import Papers, Stamp
from erasable.training import State


def first_papers(state: State, stamp: Stamp, readmitted: int = 0) -> Papers:
    """Return the papers of a recommender that has just learned: a new key, and the first record."""
    key = new_key()
    facts = {"public_key": public_key_of(key), **version_facts(state, stamp), **readmission_facts(readmitted)}
    return Papers(audit=add_record(b"", "learn", facts), key=key)


def version_facts(state: State, stamp: Stamp) -> dict[str, object]:
    """Return what a record says about the version that it is about."""
    return {
        "version": stamp.version,
        "state": state_digest(stamp.salt, state),
        "data": data_digest(stamp.salt, state.knowledge),
        "erasable": version("erasable"),
    }


def readmission_facts(readmitted: int) -> dict[str, object]:
    """Return what a record says about people who came back although they were erased: how many, not who."""
    return {"readmitted": readmitted} if readmitted else {}


def record_verification(home: Home, facts: dict[str, object], work: Work) -> bool:
    """Write down the outcome of a verification; where nothing can be written that is said, and changes no verdict."""
    try:
        with home.writing() as session:
            papers = session.papers()
            session.amend(replace(papers, audit=add_record(papers.audit, "verify", facts)))
    except WorkspaceError as error:
        work.reporter.note(said("the verification could not be recorded: ", error.said))
        return False
    return True
