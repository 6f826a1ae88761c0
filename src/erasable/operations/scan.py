"""Scan: search a workspace for what is left of a person."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from erasable.data.columns import ColumnNames
from erasable.data.ids import NONE_NEAR, NearIds
from erasable.data.interactions import Interactions
from erasable.data.readers import read_interactions
from erasable.errors import UnknownUser, WrongUse, option
from erasable.operations._searching import held_ids, rows_to_search, with_queue
from erasable.operations._vocabulary import vocabulary_of
from erasable.operations.people import near_in
from erasable.operations.prepare import ANY_COLUMNS
from erasable.operations.work import QUIET_WORK, Work
from erasable.proof.search_file import read_search
from erasable.scan import Scan, Target, scan_folder
from erasable.workspace.workspace import Workspace


@dataclass(frozen=True)
class PersonScan(Scan):
    """A scan of a workspace for one person."""

    near: NearIds = NONE_NEAR
    """If nothing is held under the id: how many ids are held that differ from it only a little."""

    @property
    def clean(self) -> bool:
        """Whether nothing was found, and no id is held that is most likely the same person."""
        return not self.residues and not self.near.held


def scan(
    folder: Path, user: str, data: Path | None = None, columns: ColumnNames = ANY_COLUMNS, work: Work = QUIET_WORK
) -> PersonScan:
    """Search every file of a workspace for a person, who may be held there or not.

    The person's rows, from the workspace or from a table that still has them, are searched for by value too; without
    either only the id is known. Ids that differ from it only a little are counted. Files that a killed command left are
    searched as well, so none is removed before.
    """
    if not user.strip():
        raise WrongUse("no user is named: give ", option("user"), " an id, exactly as in the data")
    rows = None if data is None else _rows_in(data, user, columns)
    with Workspace.reading(folder, sweeping=False) as workspace:
        dataset = workspace.state().dataset
        documents = workspace.documents()
        held = replace(held_ids(dataset, read_search(documents.pending).users), declared=documents.preferences.issuers)
        targets = [_target(workspace, user, rows)]
        vocabulary, follow = vocabulary_of(dataset), partial(work.reporter.track, "scanning")
        found = scan_folder(folder, targets, vocabulary, held=held, follow=follow)
        found = with_queue(found, folder, targets, vocabulary, held.declared)
        return PersonScan(**vars(found), near=near_in(dataset, user))


def _rows_in(data: Path, user: str, columns: ColumnNames) -> Interactions:
    rows = read_interactions(data, columns, fewest_users=1).interactions.of_users([user])
    if not len(rows):
        raise UnknownUser(f"{data} holds nothing about the user {user!r}: check the id, or leave out ", option("data"))
    return rows


def _target(workspace: Workspace, user: str, rows: Interactions | None) -> Target:
    state = workspace.state()
    try:
        position, row = state.dataset.find(user)
    except UnknownUser:
        return Target(user, rows=None if rows is None else rows_to_search(rows))
    personal = state.trained_rows(workspace.checkpoints, position)
    held = state.dataset.data_of([user]) if rows is None else rows
    return Target(user, rows=rows_to_search(held), personal=tuple(array[row].copy() for array in personal.values()))
