"""The issuer: whose name certificates carry, which a workspace remembers."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from erasable.errors import ErasableError, Refused, ResidueFound, Said
from erasable.operations.home import Home
from erasable.training import Knowledge

_LONGEST = 200


def name_issuer(home: Home, issuer: str) -> None:
    """Name who issues the certificates from now on; without a name none is carried."""
    name = " ".join(issuer.split())
    if len(name) > _LONGEST:
        raise Refused(f"the issuer's name is longer than {_LONGEST} letters: give a shorter one")
    with home.writing() as session:
        if name and _holds_an_id(name, session.state().knowledge):
            raise Refused(
                "the issuer's name holds the id of someone in the data, and certificates name nobody: give it in other "
                "words",
                Said("", " with erasable forget DIR --issuer NAME"),
            )
        papers = session.papers()
        before = papers.preferences
        issuers = tuple(dict.fromkeys(filter(None, (*before.issuers, before.issuer, name))))
        preferences = before.model_copy(update={"issuer": name or None, "issuers": issuers})
        session.amend(replace(papers, preferences=preferences))


@contextmanager
def issuing_as(home: Home, issuer: str | None) -> Iterator[None]:
    """Name who issues the certificates, if a name is given; if the block is refused, it is as before."""
    if issuer is None:
        yield
        return
    with home.reading() as session:
        before, erasures = session.papers().preferences, session.erasures
    name_issuer(home, issuer)
    try:
        yield
    except ResidueFound:  # the erasure is done, and its certificate carries the name when it is finished
        raise
    except ErasableError:
        with suppress(ErasableError), home.writing() as session:
            papers = session.papers()
            kept = before.issuers if session.erasures == erasures else papers.preferences.issuers
            named = papers.preferences.model_copy(update={"issuer": before.issuer, "issuers": kept})
            session.amend(replace(papers, preferences=named))
        raise


def _holds_an_id(name: str, knowledge: Knowledge) -> bool:
    """Whether the id of a user stands in a name, in capital letters or not, and not as a part of a longer word."""
    text = name.casefold()
    found = {user.casefold() for group in knowledge.groups for user in group.users if user.casefold() in text}
    return any(re.search(rf"(?<!\w){re.escape(user)}(?!\w)", text) for user in found)
