"""Bodies read strictly: a name that comes twice, or a number that is none, leaves open what is asked for."""

import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute


class StrictRoute(APIRoute):
    """A route whose body can be read in one way only."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers."""
        answer = super().get_route_handler()

        async def answer_strictly(request: Request) -> Response:
            return await answer(_StrictRequest(request.scope, request.receive))

        return answer_strictly


class _StrictRequest(Request):
    async def json(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        return json.loads(await self.body(), object_pairs_hook=_named_once, parse_constant=_refuse_constant)


def _named_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ValueError("a name comes twice")
    return named


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError("no number of JSON")
