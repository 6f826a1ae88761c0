"""Searching a workspace for those who are erased, and telling of whom something is left."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from erasable.errors import WorkspaceError
from erasable.operations.home import Session
from erasable.operations.traces import held_ids, targets_of
from erasable.proof import Search
from erasable.proof.residue import (
    Follow,
    Held,
    Residue,
    Scan,
    Target,
    naming,
    scan_contents,
    scan_folder,
    unfollowed,
)
from erasable.requests.opening import typed_in_elsewhere
from erasable.store.layout import LEDGER, LEDGER_FILES
from erasable.training import Knowledge

_SHOWN = 5
_HIDDEN = "…"
_OF_A_NAME = ("the name", "the link")


@dataclass(frozen=True)
class Found:
    """What a search came to."""

    clean: Search
    """Of whom nothing is left."""
    scan: Scan | None
    """The scan that found nothing of them; none in memory, where there are no files."""
    places: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Where something is left of the others, in words, by request."""
    shown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same as pages show it, in words that hold nothing of those who are sought."""


def search_for(session: Session, search: Search, held: Knowledge, follow: Follow = unfollowed) -> Found:
    """Search every file but the search file, which goes when the certificates are written.

    Whoever something is found of is left out, until nothing is found of all others in one scan. Each scan is followed.
    """
    if session.path is None:
        with follow(None):
            return Found(search, None)
    held_there = replace(held_ids(held), declared=session.papers().preferences.issuers)
    look = _Look(session, session.path, held_there, follow)
    places, shown = dict[str, str](), dict[str, tuple[str, ...]]()
    clean = search
    try:
        while True:
            scan = look(clean)
            if not scan.residues:
                return Found(clean, scan, places, shown)
            blamed = _blamed(look, clean, scan.residues)
            places |= {request_id: said(session, residues) for request_id, residues in blamed.items()}
            shown |= places_shown(search, blamed)
            clean = clean.without(blamed)
            if not clean.erasures:
                return Found(clean, None, places, shown)
    except WorkspaceError as error:
        unsearched = f"not every file could be searched ({error})"
        return Found(clean.of(()), None, places | {one.request_id: unsearched for one in clean.people}, shown)


def said(session: Session, residues: Sequence[Residue]) -> str:
    """Say where something is left."""
    named = "; ".join(f"{residue.file} ({residue.place})" for residue in residues[:_SHOWN])
    return f"{len(residues)} places still hold the person: {named}{_hint(session, residues)}"


def places_shown(search: Search, found: Mapping[str, Sequence[Residue]]) -> dict[str, tuple[str, ...]]:
    """Return where something is left, by request, without what in it holds anything of those who are sought."""
    few = {request_id: [*dict.fromkeys(residues)][:_SHOWN] for request_id, residues in found.items()}
    targets = [target for erased in search.erasures for target in targets_of(erased)]
    parts = {part for residues in few.values() for one in residues for part in (*one.file.split("/"), one.place)}
    hidden = naming(parts, targets)

    def shown(residue: Residue) -> str:
        *folders, name = [_HIDDEN if part in hidden else part for part in residue.file.split("/")]
        file = "/".join([*folders, _HIDDEN if residue.place.startswith(_OF_A_NAME) else name])
        return f"{file} ({_HIDDEN if residue.place in hidden else residue.place})"

    return {request_id: tuple(dict.fromkeys(map(shown, residues))) for request_id, residues in few.items()}


@dataclass(frozen=True)
class _Look:
    """Looks for people in every file but the search file and what is sealed."""

    session: Session
    path: Path
    held: Held
    follow: Follow

    def __call__(self, search: Search) -> Scan:
        """Scan for some people."""
        targets = [target for erased in search.erasures for target in targets_of(erased)]
        skip, sealed = self.session.pending_files, self.session.sealed_files
        found = scan_folder(self.path, targets, skip, self.held, sealed, self.follow)
        return with_queue(found, self.path, targets, self.held)


def with_queue(scan: Scan, path: Path, targets: Sequence[Target], held: Held) -> Scan:
    """Return a scan of a workspace with what was found in its queue, where that lies elsewhere."""
    typed_in = typed_in_elsewhere(path)
    if typed_in is None:
        return scan
    return replace(scan, residues=(*scan.residues, *scan_contents({LEDGER: typed_in}, targets, (), held)))


def _blamed(look: _Look, search: Search, residues: Sequence[Residue]) -> dict[str, list[Residue]]:
    """Return of whom residues are, by request.

    Ids tell it. Names of checkpoints and items that are gone belong to all of an erasure. Values name nobody, so that
    people are searched for in halves.
    """
    named: dict[str, list[Residue]] = {}
    for residue in residues:
        for request_id in _owners(search, residue):
            named.setdefault(request_id, []).append(residue)
    people = [one.request_id for one in search.people]
    if named or len(people) == 1:
        return named or {people[0]: [*residues]}
    halves = (people[: len(people) // 2], people[len(people) // 2 :])
    for part in (search.of(half) for half in halves):
        found = look(part).residues
        named |= _blamed(look, part, found) if found else {}
    return named or {one: [*residues] for one in people}


def _owners(search: Search, residue: Residue) -> list[str]:
    """Return the requests that a residue tells of by what stands there."""
    of, found = frozenset(residue.of), list[str]()
    for erased in search.erasures:
        whole = not of.isdisjoint(erased.texts) or not of.isdisjoint(erased.own_items)
        found += [one.request_id for one in erased.people if whole or one.user in of]
    return found


def _hint(session: Session, residues: Sequence[Residue]) -> str:
    """Return what to do about the ledger, which must not be removed."""
    if not any(residue.file in LEDGER_FILES for residue in residues):
        return ""
    place = shlex.quote(str(session.path))
    return (
        " (leave the ledger where it is: an open request or a remark about the person goes when erasable serve runs, "
        f"which finishes this; a token's label that names the person is changed by erasable token rename {place} "
        f"NUMBER LABEL, with the number that erasable token list {place} shows)"
    )
