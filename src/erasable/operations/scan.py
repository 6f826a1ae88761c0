"""Scan: search a workspace for what is left of a person."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from erasable.data import ColumnNames, Interactions, read_interactions
from erasable.errors import UnknownUser, WrongUse, option
from erasable.operations.near import near_in
from erasable.operations.prepare import ANY_COLUMNS
from erasable.operations.searching import with_queue
from erasable.operations.traces import held_ids
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof import read_search
from erasable.proof.residue import Scan, Target, scan_folder
from erasable.store import Workspace


def scan(
    folder: Path, user: str, data: Path | None = None, columns: ColumnNames = ANY_COLUMNS, work: Work = QUIET_WORK
) -> Scan:
    """Search every file of a workspace for a person, who may be held there or not.

    What is held of them, or what a table says that still has them, is searched as values too; without either only their
    id is known; ids that are held and differ from it only a little are counted. Files that a killed command left are
    searched as well, so none is swept away before.
    """
    if not user.strip():
        raise WrongUse("no user is named: give ", option("user"), " an id, exactly as in the data")
    rows = None if data is None else _rows_in(data, user, columns)
    with Workspace.reading(folder, sweeping=False) as workspace:
        knowledge = workspace.state().knowledge
        papers = workspace.papers()
        held = replace(held_ids(knowledge, read_search(papers.pending).users), declared=papers.preferences.issuers)
        targets = [_target(workspace, user, rows)]
        found = scan_folder(folder, targets, held=held, follow=partial(work.reporter.track, "scanning"))
        found = with_queue(found, folder, targets, held)
        return replace(found, near=near_in(knowledge, user))


def _rows_in(data: Path, user: str, columns: ColumnNames) -> Interactions:
    rows = read_interactions(data, columns, fewest_users=1).interactions.of_users([user])
    if not len(rows):
        raise UnknownUser(f"{data} holds nothing about the user {user!r}: check the id, or leave out ", option("data"))
    return rows


def _target(workspace: Workspace, user: str, rows: Interactions | None) -> Target:
    state = workspace.state()
    try:
        position, row = state.knowledge.find(user)
    except UnknownUser:
        return Target(user, rows=rows)
    personal = state.trained_rows(workspace.checkpoints, position)
    held = state.knowledge.data_of([user]) if rows is None else rows
    return Target(user, rows=held, personal=tuple(array[row].copy() for array in personal.values()))
