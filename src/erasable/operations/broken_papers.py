"""Whether the papers of a recommender are whole enough to go on from: asked before anything is erased."""

from erasable.errors import WorkspaceDamaged, said
from erasable.operations.home import Session
from erasable.proof import newest_papers_fault, read_search, records_of, version_fault


def refuse_broken_papers(session: Session) -> None:
    """Refuse where log, signing key and version do not fit each other: a certificate made upon them never verifies."""
    papers = session.papers()
    fault = newest_papers_fault(papers, session.issued(), bool(session.sealed_files))
    if fault is None and not is_unrecorded(session):
        fault = version_fault(papers, session.stamp, session.state())
    if fault:
        remedy = ": nothing was done; restore the workspace from a copy made after the last erasure"
        raise WorkspaceDamaged(said(fault, remedy))


def is_unrecorded(session: Session) -> bool:
    """Whether the current version was made by an erasure that nobody could be certified of yet."""
    papers = session.papers()
    recorded = [record["version"] for record in records_of(papers.audit) if record["what"] != "verify"]
    made = [one.version for one in read_search(papers.pending).erasures]
    return any(one in (None, session.stamp.version) for one in made) and session.stamp.version not in recorded[-1:]
