"""What an erasure writes outside the workspace: receipts, and the do-not-learn list."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from erasable.errors import WrongUse, option
from erasable.operations.do_not_learn import Listing
from erasable.proof import Receipt
from erasable.proof.suppression import Suppression
from erasable.store import files


@dataclass(frozen=True)
class Outside:
    """What an erasure writes outside the workspace, if anything.

    Parameters
    ----------
    receipts : Path, optional
        The folder for the people's receipts.
    suppression : Suppression, optional
        Another do-not-learn list, with its key, than the one that is remembered.
    without_do_not_learn : bool, default False
        Whether no such list is kept from now on.
    reference : str, optional
        The own case number of one person's request, which the receipt holds.

    Examples
    --------
    >>> Outside(receipts=Path("receipts")).without_do_not_learn
    False
    """

    receipts: Path | None = None
    """The folder for the subjects' receipts."""
    suppression: Suppression | None = None
    """Another do-not-learn list, with its key, than the one that is remembered."""
    without_do_not_learn: bool = False
    """Whether no such list is kept from now on."""
    reference: str | None = None
    """The own case number of one person's request, which the receipt holds."""

    @property
    def listing(self) -> Listing:
        """What is said about the do-not-learn list."""
        return Listing(self.suppression, self.without_do_not_learn)


NOTHING_OUTSIDE = Outside()


def prepare_outside(outside: Outside, workspace: Path | None) -> None:
    """Refuse, before any work, what could not be written outside the workspace afterwards."""
    folder = outside.receipts
    if folder is None:
        return
    if workspace is not None and folder.resolve().is_relative_to(workspace.resolve()):
        raise WrongUse(f"{folder} lies in the workspace, which must not keep receipts: give another folder")
    if not folder.is_dir():
        files.make_folder(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise WrongUse(f"{folder} can't be written to: give ", option("receipts"), " another folder")


def write_receipts(receipts: Sequence[Receipt], folder: Path) -> None:
    """Write each person's receipt, for its owner alone."""
    for receipt in receipts:
        files.write_file(folder / f"{receipt.request_id}.json", receipt.encoded())
