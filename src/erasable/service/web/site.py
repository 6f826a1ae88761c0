"""The site: all pages, their headers, and errors as pages."""

from fastapi import FastAPI

from erasable.service.web import (
    audit_page,
    groups_page,
    overview_page,
    planning_page,
    receipt_page,
    reference_page,
    request_list,
    request_page,
    static_files,
    visits,
)
from erasable.service.web.audit_watch import AuditWatch
from erasable.service.web.failures import answer_problems_as_pages
from erasable.service.web.headers import PageHeaders

_PARTS = (
    overview_page,
    request_list,
    request_page,
    planning_page,
    groups_page,
    audit_page,
    receipt_page,
    reference_page,
    visits,
    static_files,
)


def add_pages(app: FastAPI) -> None:
    """Add the pages to an application that answers problems already."""
    app.state.audit_watch = AuditWatch(app.state.shop.home)
    for part in _PARTS:
        app.router.routes.extend(part.router.routes)
    answer_problems_as_pages(app)
    app.add_middleware(PageHeaders)
