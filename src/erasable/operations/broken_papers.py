"""Whether the papers of a recommender are whole enough to go on from: asked before anything is erased."""

from erasable.errors import WorkspaceDamaged, said
from erasable.operations.home import Session
from erasable.proof import newest_papers_fault, read_pending, version_fault


def refuse_broken_papers(session: Session) -> None:
    """Refuse where log, signing key and version do not fit each other: a certificate made upon them never verifies."""
    papers = session.papers()
    fault = newest_papers_fault(papers, session.issued(), bool(session.sealed_files))
    # An erasure that is current and not yet certified is not yet recorded either.
    if fault is None and read_pending(papers.pending).erased is None:
        fault = version_fault(papers, session.stamp, session.state())
    if fault:
        remedy = ": nothing was done; restore the workspace from a copy made after the last erasure"
        raise WorkspaceDamaged(said(fault, remedy))
