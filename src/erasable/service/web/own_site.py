"""Forms are taken from our own pages only: by what the browser says of where they come from, and by a token in each.

The token is made from the secret of the visit, which no other site can read. `Origin: null` says nothing, since our
pages ask for no referrer, and browsers then hide the origin of forms from ourselves, too.
"""

import hmac
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Form, Request

from erasable.errors import NotAllowed
from erasable.service.access import VISIT_COOKIE

_OWN = (None, "same-origin", "none")


def form_token(request: Request) -> str:
    """Return what the forms of this visit carry; nothing without a visit."""
    secret = request.cookies.get(VISIT_COOKIE, "")
    return hmac.new(secret.encode("utf-8", "replace"), b"form", "sha256").hexdigest() if secret else ""


async def refuse_other_sites(request: Request) -> None:
    """Refuse a form that another site's page sent."""
    origin = request.headers.get("origin", "null")
    foreign = origin != "null" and urlsplit(origin).netloc != request.headers.get("host")
    if foreign or request.headers.get("sec-fetch-site") not in _OWN:
        raise NotAllowed("the form came from another site: open the page here and send it again")


async def refuse_foreign_forms(request: Request, token: Annotated[str, Form(alias="form_token")] = "") -> None:
    """Refuse a form that no page of this visit has made; without a visit it is refused for that."""
    await refuse_other_sites(request)
    if not hmac.compare_digest(token.encode("utf-8", "replace"), form_token(request).encode()):
        raise NotAllowed("the form is not of this visit: open the page again and send it again")
