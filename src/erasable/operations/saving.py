"""Save: a copy of a recommender in a new workspace; the recommender itself stays where it is."""

from dataclasses import replace
from pathlib import Path

from erasable.errors import Refused
from erasable.operations.do_not_learn import copying
from erasable.operations.home import Home
from erasable.operations.recording import version_facts
from erasable.operations.recovery import is_left
from erasable.operations.suppressed import asked_people
from erasable.proof import add_record
from erasable.store import Workspace


def save_copy(home: Home, folder: Path) -> None:
    """Write what is current into a new workspace, with a do-not-learn list beside it.

    The copy goes on where the original is, as a copied folder would: log, version, salt and signing key are the same,
    so that the certificates in it still check. From the next change on each has a version and a salt of its own
    (docs/decisions/0032-what-a-copy-shares.md).
    """
    with (
        home.reading() as session,
        Workspace.creating(folder, session.papers().preferences.readable_by_group) as workspace,
        copying(session, workspace.path) as preferences,
    ):
        if session.papers().pending or any(map(is_left, home.asked())):
            raise Refused("an erasure is not finished: finish it with forget([]) before saving a copy")
        if asked_people(home, session).people:  # a copy would have no ledger, and serve them
            raise Refused("someone has an open request with the service: save a copy once that is carried out")
        state = session.state()
        if state.recorded:
            raise Refused("this workspace is of an earlier release: copy its folder instead")
        for link in state.chain:
            workspace.checkpoints.put(session.checkpoints.get(link.fingerprint))
        papers = session.papers()
        record = add_record(papers.records(), "save", version_facts(state, session.stamp))
        own = preferences.model_copy(update={"queue": None, "queue_id": None})  # the queue is the original's
        papers = replace(papers, audit=record, certificates=session.issued(), preferences=own)
        workspace.commit(state, papers, session.stamp)
