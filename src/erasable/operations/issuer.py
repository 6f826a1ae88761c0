"""The issuer: whose name certificates carry, which a workspace remembers."""

import re
from dataclasses import replace

from erasable.errors import Refused
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
                "words with erasable forget DIR --issuer NAME"
            )
        papers = session.papers()
        preferences = papers.preferences.model_copy(update={"issuer": name or None})
        session.amend(replace(papers, preferences=preferences))


def _holds_an_id(name: str, knowledge: Knowledge) -> bool:
    """Whether the id of a user stands in a name, in capital letters or not, and not as a part of a longer word."""
    text = name.casefold()
    found = {user.casefold() for group in knowledge.groups for user in group.users if user.casefold() in text}
    return any(re.search(rf"(?<!\w){re.escape(user)}(?!\w)", text) for user in found)
