"""The page of groups: who is trained together, and in which order; from memory, so that nothing is computed."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from erasable.operations import GroupFacts
from erasable.requests.tokens import Caller
from erasable.service.access import PAGES
from erasable.service.shop import shop_of
from erasable.service.web.pages import page
from erasable.training import Knowledge

router = APIRouter(include_in_schema=False)


@router.get("/groups")
def show_groups(request: Request, caller: Annotated[Caller, Depends(PAGES)]) -> Response:
    """Show the groups and the chain."""
    shop = shop_of(request)
    knowledge = shop.live.knowledge
    facts = {
        "groups": _group_facts(knowledge),
        "config": knowledge.config,
        "stages": knowledge.stages,
        "solves_rows": knowledge.solves_rows,
        "users": knowledge.users,
        "interactions": knowledge.interactions,
        "version": shop.live.version,
    }
    return page(request, "groups.html", facts)


def _group_facts(knowledge: Knowledge) -> list[GroupFacts]:
    """Return the groups with the cohesion that is known; computing it anew may take long."""
    known = knowledge.cohesion or (None,) * len(knowledge.groups)
    return [
        GroupFacts(position, len(group.users), len(group), *(cohesion[:2] if cohesion else (None, None)))
        for position, (group, cohesion) in enumerate(zip(knowledge.groups, known, strict=True), start=1)
    ]
