"""The routes of declared items, which are hidden or have attributes, and the JSON that they take and give."""

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Self, TypeAlias

import pyarrow as pa
from fastapi import APIRouter, Depends
from fastapi import Request as HttpRequest
from fastapi.concurrency import run_in_threadpool
from pydantic import AfterValidator, ConfigDict, Field, PlainValidator, model_validator

from erasable.data.item_attributes import ITEM
from erasable.errors import DataRefused, WorkspaceBusy
from erasable.operations.declared_items import ItemFacts, declare_items, item_facts, read_declared
from erasable.requests.tokens import Caller
from erasable.service._http import ANY_ROLE, OPERATING, RESPONSES, StrictRoute, service_of
from erasable.service.api._schemas import Id, Incoming, Schema, encodable
from erasable.service.settings import log

_PATIENCE = 5.0  # seconds; an erasure holds the workspace for longer, and a command that writes for shorter
_PAUSE = 0.1
_MOST_COLUMNS = 100
_Plain: TypeAlias = str | int | float | bool | None


def _plain(value: Any) -> _Plain:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, str):
        return encodable(value)
    if not isinstance(value, _Plain) or value in (float("inf"), float("-inf")):
        raise ValueError("give a text, a number, true, false or null")
    return value


ColumnName = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(encodable)]
Value = Annotated[_Plain, PlainValidator(_plain, json_schema_input_type=_Plain)]


class ItemsToDeclare(Incoming):
    """What is to be declared about items; nothing of it is about people."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"hide": ["item-1"], "attributes": {"item-2": {"category": "books", "price": 12.5}}}]
        }
    )

    hide: list[Id] = Field(default=[], max_length=10_000)
    """Recommend these items to nobody from now on."""
    show: list[Id] = Field(default=[], max_length=10_000)
    """Recommend these hidden items again."""
    attributes: dict[Id, dict[ColumnName, Value]] | None = Field(default=None, min_length=1, max_length=100_000)
    """The attributes of all items, by item id: these replace those declared before, and hidden items stay hidden. A
    column holds texts, numbers, or true and false; null says nothing. A time is a text."""

    @model_validator(mode="after")
    def _declares_something(self) -> Self:
        if not (self.hide or self.show or self.attributes):
            raise ValueError("give hide, show or attributes")
        return self


class ItemsDeclared(Schema):
    """What is declared about items."""

    items: int
    """How many items the catalogue has."""
    declared: int
    """How many have attributes."""
    attributes: list[str]
    """The columns that `where` of a recommendation can name."""
    hidden: list[str]
    """The items that are recommended to nobody."""
    unknown: int
    """How many with attributes the catalogue does not have: they can't be recommended yet."""

    @staticmethod
    def of(facts: ItemFacts) -> "ItemsDeclared":
        """Return the facts for the API."""
        return ItemsDeclared(
            items=facts.items,
            declared=facts.declared,
            attributes=list(facts.attributes),
            hidden=list(facts.hidden),
            unknown=facts.unknown,
        )


router = APIRouter(prefix="/v1/items", tags=["items"], responses=RESPONSES, route_class=StrictRoute)


@router.get("")
def show_items(request: HttpRequest, caller: Annotated[Caller, Depends(ANY_ROLE)]) -> ItemsDeclared:
    """Say which items are hidden, and which attributes are declared, as this server recommends now."""
    served = service_of(request).live.served
    return ItemsDeclared.of(item_facts(served.dataset.items, served.declared))


@router.post("")
async def change_items(
    request: HttpRequest, wanted: ItemsToDeclare, caller: Annotated[Caller, Depends(OPERATING)]
) -> ItemsDeclared:
    """Hide items, show hidden ones again, and replace the attributes to filter by, in one change; nothing is trained.

    When this answers, this server recommends so; others that serve the workspace follow within a second. A repeat
    changes nothing. While the worker or a command is writing for longer than a few seconds, as an erasure does, nothing
    is changed and the answer is 503: send it again.
    """
    service = service_of(request)
    table = None if wanted.attributes is None else await run_in_threadpool(_table, wanted.attributes)
    change = partial(declare_items, service.storage, wanted.hide, wanted.show, table)
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            facts = await run_in_threadpool(change)
            break
        except WorkspaceBusy:
            if time.monotonic() > end:
                raise
        await asyncio.sleep(_PAUSE)  # not in a thread, which others need
    await run_in_threadpool(service.live.catch_up)
    changed = {"hide": len(wanted.hide), "show": len(wanted.show), "attributes": len(wanted.attributes or ())}
    log("items declared", actor=caller.actor, **changed)
    return ItemsDeclared.of(facts)


def _table(attributes: Mapping[str, Mapping[str, _Plain]]) -> pa.Table:
    """Return attributes as a table, as the command reads one from a file."""
    names = dict.fromkeys(name for own in attributes.values() for name in own)
    if len(names) > _MOST_COLUMNS:
        raise DataRefused(f"attributes: {len(names):,} columns are more than {_MOST_COLUMNS}: leave some out")
    columns = [_column(name, [own.get(name) for own in attributes.values()]) for name in names]
    ids = pa.array(list(attributes), pa.string())
    return read_declared(pa.table([ids, *columns], [ITEM, *names]), ITEM)


def _column(name: str, values: list[_Plain]) -> pa.Array:
    kinds = {
        bool if isinstance(one, bool) else str if isinstance(one, str) else float for one in values if one is not None
    }
    if len(kinds) > 1:
        raise DataRefused(f"attributes: the column {name} mixes texts, numbers, or true and false: give one kind")
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        raise DataRefused(
            f"attributes: the column {name} holds a number that is too large: give it as a text"
        ) from None
