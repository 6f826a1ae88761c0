"""The pages in a browser: small and wide, light and dark, by keyboard alone, with and without scripts."""

import shutil
import socket
import threading
import time
from itertools import product
from urllib.parse import urlsplit

import pytest
import uvicorn

from erasable.service._running import make_application
from kit.choosing import some

CHROMIUM = shutil.which("chromium")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

OFFICE_PAGES = ("/", "/requests", "/plan", "/groups", "/log")
OPEN_PAGES = ("/login", "/receipt", "/docs", "/nowhere")
WIDTHS, SCHEMES = (390, 1280), ("light", "dark")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def address(shop):
    """Where the shop is served."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(make_application(shop), log_config=None, ws="none"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture
def open_page(browser, address):
    """Open browsers that notice errors and requests to others; what they noticed must be nothing."""
    contexts, noticed = [], []

    def open_one(**options):
        context = browser.new_context(base_url=address, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda told: noticed.append(told.text) if told.type == "error" else None)
        page.on("pageerror", lambda error: noticed.append(str(error)))
        page.on(
            "request", lambda sent: noticed.append(sent.url) if urlsplit(sent.url).hostname != "127.0.0.1" else None
        )
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert [one for one in noticed if "404" not in one] == []


def sign_in(page, shop):
    _, token = shop.tokens.create("officer", "", shop.clock())
    page.goto("/login")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Overview", level=1).wait_for()
    return page


def submit(page, user: str) -> str:
    """Submit a request, and return its receipt code; the page of the request is open then."""
    page.goto("/requests")
    page.get_by_label("User id").fill(user)
    page.get_by_role("button", name="Submit the request").click()
    code = page.locator("code[data-copy]").inner_text()
    page.locator("main a[href^='/requests/']").click()
    return code


def fill_with_requests(shop, clock, worker, office, users) -> list[str]:
    """Have requests in several states, and return the addresses of their pages."""
    erased = office.submit(users[0])[0]
    clock.advance(days=6)
    worker.step()
    shop.reception.follow()
    waiting, held = office.submit(users[1])[0], office.submit(users[2])[0]
    office.send(f"/requests/{held}/actions/hold", reason="x" * 200)
    facts = {"batch": "abc", "requests": 1, "stages_rerun": 2, "stages_total": 3, "rerun": [1, 2]}
    shop.queue.advance(waiting, "erasing", "worker", clock(), facts)
    clock.advance(days=22)
    return [f"/requests/{request_id}" for request_id in (erased, waiting, held)]


@pytest.mark.parametrize(("width", "scheme"), some([*product(WIDTHS, SCHEMES)], 1))
def test_every_page_fits_and_has_no_fault_of_access(open_page, shop, clock, worker, office, users, width, scheme):
    pages = fill_with_requests(shop, clock, worker, office, users)
    page = open_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    sign_in(page, shop)
    for address in (*OFFICE_PAGES, *OPEN_PAGES, *pages):
        page.goto(address)
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0, address
        found = axe.Axe().run(page)
        assert found.violations_count == 0, f"{address}: {found.generate_report()}"


@pytest.mark.full
def test_results_of_forms_have_no_fault_of_access_either(open_page, shop, clock, worker, users):
    page = sign_in(open_page(viewport={"width": 390, "height": 800}), shop)
    code = submit(page, users[0])
    page.goto("/plan")
    page.get_by_role("button", name="Work it out", exact=True).click()
    page.get_by_role("table").wait_for()
    assert axe.Axe().run(page).violations_count == 0
    clock.advance(days=6)
    worker.step()
    page.goto("/receipt")
    page.get_by_label("Receipt code").fill(code)
    page.get_by_role("button", name="Show").click()
    page.get_by_label("Your user id").fill(users[0])
    page.get_by_role("button", name="Check").click()
    page.get_by_text("this certificate is about you").wait_for()
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0


def test_keyboard_reaches_content_and_navigation(open_page, shop):
    page = sign_in(open_page(), shop)
    page.goto("/requests")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.locator(".skip").bounding_box()["y"] >= 0
    reached = []
    for _ in range(6):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent"))
    assert reached == ["erasable", "Overview", "Requests", "Plan", "Groups", "Log"]
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.goto("/requests")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def test_request_is_seen_to_be_erased_without_reloading(open_page, shop, clock, worker, users):
    page = sign_in(open_page(), shop)
    submit(page, users[0])
    assert page.locator(".lead .state").inner_text() == "suppressed"
    clock.advance(days=6)
    worker.step()
    page.locator(".lead .state.erased").wait_for(timeout=10_000)
    assert page.locator(".strip li").count() == shop.live.dataset.stages
    page.get_by_role("link", name="to read").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Certificate of erasure"


@pytest.mark.full
def test_everything_works_without_scripts(open_page, shop, clock, worker, users):
    page = sign_in(open_page(java_script_enabled=False), shop)
    code = submit(page, users[0])
    page.locator("summary", has_text="Put on hold").click()
    page.get_by_label("Reason").first.fill("identity is being checked")
    page.get_by_role("button", name="Put on hold").click()
    page.get_by_role("button", name="Release").click()
    clock.advance(days=6)
    worker.step()
    page.reload()
    assert page.locator(".lead .state").inner_text() == "erased"
    page.goto("/receipt")
    page.get_by_label("Receipt code").fill(code)
    page.get_by_role("button", name="Show").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the signed file").click()
    assert download.value.suggested_filename.startswith("certificate-")


def test_taking_back_is_asked_about_first(open_page, shop, users):
    page = sign_in(open_page(), shop)
    submit(page, users[0])
    answers = [False, True]
    page.on("dialog", lambda dialog: dialog.accept() if answers.pop() is False else dialog.dismiss())
    page.get_by_text("Take back").first.click()
    page.get_by_role("button", name="Take back").click()
    assert page.locator(".lead .state").inner_text() == "suppressed"
    page.get_by_role("button", name="Take back").click()
    page.locator(".lead .state.withdrawn").wait_for()


def test_code_can_be_copied(open_page, shop, users):
    page = sign_in(open_page(permissions=["clipboard-read", "clipboard-write"]), shop)
    page.goto("/requests")
    page.get_by_label("User id").fill(users[0])
    page.get_by_role("button", name="Submit the request").click()
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("code[data-copy]").inner_text()
