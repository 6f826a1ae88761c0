"""Style, script and icon of the pages, read once."""

from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from starlette.exceptions import HTTPException

from erasable.requests.tokens import Caller
from erasable.service.access import OPEN_PAGES

router = APIRouter(include_in_schema=False)
_TYPES = {"style.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}
_FILES = {name: (files("erasable.service.web") / "static" / name).read_bytes() for name in _TYPES}
_KEPT = {"Cache-Control": "public, max-age=300"}


@router.get("/static/{name}")
async def static_file(name: str, caller: Annotated[Caller | None, Depends(OPEN_PAGES)]) -> Response:
    """Return a file that pages need."""
    if name not in _FILES:
        raise HTTPException(404)
    return Response(_FILES[name], headers=_KEPT, media_type=_TYPES[name])
