"""The public page of a receipt: where a request is, for whoever has its code; a code is sent in no address.

A code that does not exist gets the answer of one about which nothing can be told yet: same status, headers and layout.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form, Request, Response

from erasable.operations import certificate_file
from erasable.operations.meanwhile import SERVED_WITHOUT
from erasable.proof import Receipt, read_certificate
from erasable.proof.receipt import FORMAT
from erasable.requests.codes import salt_of_code
from erasable.requests.lifecycle import Deadlines
from erasable.requests.request import Submission
from erasable.requests.tokens import Caller
from erasable.service.access import OPEN_PAGES
from erasable.service.api.schemas import Id
from erasable.service.shop import Shop, shop_of
from erasable.service.web.own_site import refuse_other_sites
from erasable.service.web.pages import page
from erasable.service.web.request_list import item_lines

router = APIRouter(prefix="/receipt", include_in_schema=False)
Visitor = Annotated[Caller | None, Depends(OPEN_PAGES)]
Code = Annotated[str, Form(max_length=100)]
Kind = Annotated[Literal["json", "html"], Form()]
_TYPES = {"json": "application/json", "html": "text/html"}


@dataclass(frozen=True)
class Told:
    """What someone types in who says that a certificate is about them."""

    user_id: Annotated[Id, Form()]
    items: Annotated[str, Form()] = ""
    reference: Annotated[str, Form(max_length=100)] = ""


@dataclass(frozen=True)
class Claim:
    """Who says that a certificate is about them, and whether it is."""

    told: Told
    holds: bool


@router.get("")
def ask_for_code(request: Request, caller: Visitor) -> Response:
    """Ask for a code."""
    return _receipt_page(request, None)


@router.post("", dependencies=[Depends(refuse_other_sites)])
def show_receipt(request: Request, caller: Visitor, code: Code) -> Response:
    """Show where a request is."""
    return _receipt_page(request, code)


@router.post("/certificate", dependencies=[Depends(refuse_other_sites)])
def certificate(request: Request, caller: Visitor, code: Code, kind: Kind) -> Response:
    """Return the certificate as a file to keep, or where the request is if there is none."""
    shop = shop_of(request)
    found = _erased(shop, code)
    if found is None:
        return _receipt_page(request, code)
    name = f"{found.request.request_id}.{kind}"
    return _attachment(certificate_file(shop.home, name), f"certificate-{name}", _TYPES[kind])


@router.post("/check", dependencies=[Depends(refuse_other_sites)])
def check(request: Request, caller: Visitor, code: Code, told: Annotated[Told, Depends()]) -> Response:
    """Say whether the certificate is about who asks."""
    holds = _receipt(shop_of(request), code, told) is not None
    return _receipt_page(request, code, Claim(told, holds))


@router.post("/file", dependencies=[Depends(refuse_other_sites)])
def receipt_file(request: Request, caller: Visitor, code: Code, told: Annotated[Told, Depends()]) -> Response:
    """Return the receipt as a file to keep, if the certificate is about who asks."""
    receipt = _receipt(shop_of(request), code, told)
    if receipt is None:
        return _receipt_page(request, code, Claim(told, holds=False))
    return _attachment(receipt.encoded(), f"receipt-{receipt.request_id}.json", "application/json")


def _receipt_page(request: Request, code: str | None, claim: Claim | None = None) -> Response:
    shop = shop_of(request)
    found = None if code is None else shop.history.submission(code)
    told = {"filed": None, "missed": None} if found is None else _told(found, shop)
    return page(request, "receipt.html", {"code": code, "claim": claim, **told})


def _told(found: Submission, shop: Shop) -> dict[str, object]:
    """Return what whoever has the code of a submission is told."""
    filed, is_told = found.request, _is_told(found, shop)
    return {
        "filed": filed,
        "received": found.at,
        "is_told": is_told,
        "deadlines": found.deadlines(shop.settings) if is_told else Deadlines.of(found.at, found.terms(shop.settings)),
        "missed": found.missed(shop.settings, shop.clock()),
        "left_out": found.left_out(),
        "served_without": is_told and shop.meanwhile(filed) == SERVED_WITHOUT,
    }


def _is_told(found: Submission, shop: Shop) -> bool:
    """Whether more is told of a submission than that it came.

    An application that keeps the code must not learn from it who had asked before, nor what was decided about it: so
    all that it submits look alike until the batch window is over and the request has ended.
    """
    if not found.unaware:
        return True
    return not found.request.open and shop.clock() >= Deadlines.of(found.at, found.terms(shop.settings)).erase_by


def _receipt(shop: Shop, code: str, told: Told) -> Receipt | None:
    """Return the receipt of who asks, if the certificate that belongs to the code is about them."""
    found = _erased(shop, code)
    if found is None:
        return None
    filed = found.request
    receipt = Receipt(
        format=FORMAT,
        request_id=filed.request_id,
        user_id=told.user_id,
        items=item_lines(told.items),
        reference=told.reference.strip() or None,
        salt=salt_of_code(found.salting_code),
    )
    issued = read_certificate(certificate_file(shop.home, f"{filed.request_id}.json"))
    return receipt if receipt.opens(issued) else None


def _erased(shop: Shop, code: str) -> Submission | None:
    """Return the submission of a code, if what was asked for is erased and that may be told."""
    found = shop.history.submission(code)
    told = found is not None and found.request.state == "erased" and _is_told(found, shop)
    return found if told else None


def _attachment(content: bytes, name: str, kind: str) -> Response:
    return Response(content, headers={"Content-Disposition": f'attachment; filename="{name}"'}, media_type=kind)
