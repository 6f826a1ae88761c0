"""The public page of a receipt: the state of a request, for whoever has its code, which is never part of an address.

An unknown code gets the answer of one about which nothing may be told yet: same status, headers and layout.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form, Response
from fastapi import Request as HttpRequest

from erasable.operations.inspect import certificate_file
from erasable.operations.people import SERVED_WITHOUT
from erasable.proof.certificate import read_certificate
from erasable.proof.issuing import FORMAT, Receipt
from erasable.requests.request import Deadlines, Submission
from erasable.requests.tokens import Caller, salt_of_code
from erasable.service._http import OPEN_PAGES, service_of
from erasable.service._service import Service
from erasable.service.api._schemas import Id
from erasable.service.web._pages import item_lines, page, refuse_other_sites

router = APIRouter(prefix="/receipt", include_in_schema=False)
Visitor = Annotated[Caller | None, Depends(OPEN_PAGES)]
Code = Annotated[str, Form(max_length=100)]
Kind = Annotated[Literal["json", "html"], Form()]
_TYPES = {"json": "application/json", "html": "text/html"}


@dataclass(frozen=True)
class Told:
    """What a person types in to check that a certificate is about them."""

    user_id: Annotated[Id, Form()]
    items: Annotated[str, Form()] = ""
    reference: Annotated[str, Form(max_length=100)] = ""


@dataclass(frozen=True)
class PersonClaim:
    """A person's claim that a certificate is about them, and whether it holds."""

    told: Told
    holds: bool


@router.get("")
def ask_for_code(request: HttpRequest, caller: Visitor) -> Response:
    """Ask for a code."""
    return _receipt_page(request, None)


@router.post("", dependencies=[Depends(refuse_other_sites)])
def show_receipt(request: HttpRequest, caller: Visitor, code: Code) -> Response:
    """Show the state of a request."""
    return _receipt_page(request, code)


@router.post("/certificate", dependencies=[Depends(refuse_other_sites)])
def certificate(request: HttpRequest, caller: Visitor, code: Code, kind: Kind) -> Response:
    """Return the certificate as a file to keep, or the state of the request if there is none."""
    service = service_of(request)
    found = _erased(service, code)
    if found is None:
        return _receipt_page(request, code)
    name = f"{found.request.request_id}.{kind}"
    return _attachment(certificate_file(service.storage, name), f"certificate-{name}", _TYPES[kind])


@router.post("/check", dependencies=[Depends(refuse_other_sites)])
def check(request: HttpRequest, caller: Visitor, code: Code, told: Annotated[Told, Depends()]) -> Response:
    """Say whether the certificate is about the person who asks."""
    holds = _receipt(service_of(request), code, told) is not None
    return _receipt_page(request, code, PersonClaim(told, holds))


@router.post("/file", dependencies=[Depends(refuse_other_sites)])
def receipt_file(request: HttpRequest, caller: Visitor, code: Code, told: Annotated[Told, Depends()]) -> Response:
    """Return the receipt as a file to keep, if the certificate is about the person who asks."""
    receipt = _receipt(service_of(request), code, told)
    if receipt is None:
        return _receipt_page(request, code, PersonClaim(told, holds=False))
    return _attachment(receipt.encoded(), f"receipt-{receipt.request_id}.json", "application/json")


def _receipt_page(request: HttpRequest, code: str | None, claim: PersonClaim | None = None) -> Response:
    service = service_of(request)
    found = None if code is None else service.history.submission(code)
    told = {"erasure_request": None, "missed": None} if found is None else _told(found, service)
    return page(request, "receipt.html", {"code": code, "claim": claim, **told})


def _told(found: Submission, service: Service) -> dict[str, object]:
    """Return what the page tells whoever has the code of a submission."""
    erasure_request, is_told = found.request, _is_told(found, service)
    return {
        "erasure_request": erasure_request,
        "received": found.at,
        "is_told": is_told,
        "deadlines": found.deadlines(service.settings)
        if is_told
        else Deadlines.of(found.at, found.terms(service.settings)),
        "missed": found.missed(service.settings, service.clock()),
        "left_out": found.left_out(),
        "served_without": is_told and service.meanwhile(erasure_request) == SERVED_WITHOUT,
    }


def _is_told(found: Submission, service: Service) -> bool:
    """Whether the page tells more about a submission than that it was received.

    An application that keeps the code must not learn who had asked before, nor what was decided: all its submissions
    look alike until the batch window is over and the request has ended.
    """
    if not found.unaware:
        return True
    return not found.request.open and service.clock() >= Deadlines.of(found.at, found.terms(service.settings)).erase_by


def _receipt(service: Service, code: str, told: Told) -> Receipt | None:
    """Return the receipt of the person who asks, if the certificate of the code is about them."""
    found = _erased(service, code)
    if found is None:
        return None
    erasure_request = found.request
    receipt = Receipt(
        format=FORMAT,
        request_id=erasure_request.request_id,
        user_id=told.user_id,
        items=item_lines(told.items),
        reference=told.reference.strip() or None,
        salt=salt_of_code(found.salting_code),
    )
    issued = read_certificate(certificate_file(service.storage, f"{erasure_request.request_id}.json"))
    return receipt if receipt.opens(issued) else None


def _erased(service: Service, code: str) -> Submission | None:
    """Return the submission of a code, if the erasure is done and that may be told."""
    found = service.history.submission(code)
    told = found is not None and found.request.state == "erased" and _is_told(found, service)
    return found if told else None


def _attachment(content: bytes, name: str, kind: str) -> Response:
    return Response(content, headers={"Content-Disposition": f'attachment; filename="{name}"'}, media_type=kind)
