"""What holds of every page: who may see it, its headers, its frame, and that nothing is fetched from elsewhere."""

import re
from itertools import pairwise

import pytest

from erasable.service.web._pages import HEADERS

OFFICE_PAGES = ("/", "/requests", "/plan", "/groups", "/log")
OPEN_PAGES = ("/login", "/receipt", "/docs")


def addresses_in(text: str) -> list[str]:
    return re.findall(r'(?:href|src|action|data-live)="([^"]*)"', text)


@pytest.fixture
def request_page(office, users) -> str:
    return f"/requests/{office.submit(users[0])[0]}"


@pytest.mark.parametrize("page", OFFICE_PAGES)
def test_page_of_the_office_needs_a_visit(stranger, page):
    answer = stranger.client.get(page)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/login?next={page}"
    assert "no-store" in answer.headers["cache-control"]


def test_page_of_a_request_needs_a_visit(stranger, request_page):
    for part in ("", "/progress", "/certificate.html", "/certificate.json"):
        assert stranger.client.get(request_page + part).headers["location"].startswith("/login?next=")


def test_list_of_requests_as_a_file_needs_a_visit(stranger):
    assert (
        stranger.client.get("/requests.csv?state=failed").headers["location"]
        == "/login?next=/requests.csv%3Fstate%3Dfailed"
    )


def test_form_without_a_visit_leads_to_signing_in(stranger):
    assert stranger.client.post("/plan").headers["location"] == "/login?next=/"


@pytest.mark.parametrize("page", OPEN_PAGES)
def test_open_page_needs_none(stranger, page):
    assert "<h1>" in stranger.get(page)


@pytest.mark.parametrize("page", [*OFFICE_PAGES, *OPEN_PAGES, "/nowhere"])
def test_page_has_a_frame_and_headers(office, page):
    answer = office.client.get(page, headers={"accept": "text/html"})
    assert '<html lang="en">' in answer.text
    assert len(re.findall("<h1[ >]", answer.text)) == 1
    assert re.search("<title>[^<]+ · erasable</title>", answer.text)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize("page", [*OFFICE_PAGES, *OPEN_PAGES])
def test_page_asks_nobody_else(office, page):
    found = addresses_in(office.get(page))
    assert found
    assert all(address.startswith(("/", "#")) and not address.startswith("//") for address in found)


@pytest.mark.parametrize("page", [*OFFICE_PAGES, *OPEN_PAGES])
def test_page_has_no_style_and_no_script_of_its_own(office, page):
    text = office.get(page)
    assert not re.search(r"<style|style=|<script(?! src=)|\son\w+=", text)


@pytest.mark.parametrize("page", [*OFFICE_PAGES, *OPEN_PAGES])
def test_headings_leave_no_level_out(office, page):
    levels = [int(level) for level in re.findall("<h([1-6])", office.get(page))]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("page", [*OFFICE_PAGES, *OPEN_PAGES])
def test_every_field_has_a_label(office, page):
    text = office.get(page)
    fields = re.findall(
        r"<(?:input|select|textarea)\b(?![^>]*type=\"(?:hidden|checkbox)\")[^>]*\bid=\"([^\"]+)\"", text
    )
    assert all(f'for="{field}"' in text for field in fields)
    unlabelled = re.findall(r"<(?:input|select|textarea)\b(?![^>]*(?:type=\"hidden\"|type=\"checkbox\"|id=))", text)
    assert not unlabelled


def test_links_lead_somewhere(office, request_page):
    pages = {
        address.split("#")[0] for page in (*OFFICE_PAGES, *OPEN_PAGES) for address in addresses_in(office.get(page))
    }
    for address in sorted(pages - {"", "/logout", "/log/verify"}):
        assert office.client.get(address).status_code == 200, address
