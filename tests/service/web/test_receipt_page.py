"""The public page of a receipt: what a code shows, what it does not, and that an unknown one is answered alike."""

import re

import pytest

from erasable.proof import read_receipt
from erasable.requests.tokens import new_receipt_code

WHERE = "/receipt"


def ask(stranger, code: str, address: str = WHERE, **fields: str):
    return stranger.client.post(address, data={"code": code, **fields})


def shape(text: str) -> list[str]:
    """The elements of a page in their order, whatever they say; words inside sentences don't count."""
    return re.findall(r"<(?!/?(?:strong|time|span)\b)/?[a-z0-9]+", text)


def steady(headers) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name != "content-length"}


@pytest.fixture
def filed(office, users) -> tuple[str, str]:
    return office.submit(users[0])


@pytest.fixture
def code(filed) -> str:
    return filed[1]


@pytest.fixture
def erased(code, clock, worker, shop) -> str:
    clock.advance(days=6)
    worker.step()
    shop.reception.follow()
    return code


def test_waiting_request_says_since_when_and_until_when(stranger, code):
    text = ask(stranger, code.lower().replace("-", " ")).text
    assert "no recommendations any more" in text
    assert "will be erased by 9 November 2026" in text
    assert "since <time" in text


@pytest.mark.parametrize("address", [WHERE, "/receipt/certificate", "/receipt/check", "/receipt/file"])
def test_unknown_code_is_answered_like_a_waiting_one(stranger, code, address):
    more = {"kind": "json", "user_id": "someone"}
    known, unknown = ask(stranger, code, address, **more), ask(stranger, new_receipt_code(), address, **more)
    assert unknown.status_code == known.status_code == 200
    assert steady(unknown.headers) == steady(known.headers)
    assert shape(unknown.text) == shape(known.text)
    assert "Nothing can be shown under this code" in unknown.text


def test_code_stands_in_no_address(stranger, code):
    text = ask(stranger, code).text
    assert not re.search(rf'(?:href|action)="[^"]*{code}', text)


def test_nothing_about_the_person_or_the_office_is_shown(office, stranger, filed, users):
    request_id, code = filed
    office.send(f"/requests/{request_id}/actions/hold", reason="an inner reason")
    text = ask(stranger, code).text
    assert users[0] not in text
    assert request_id not in text
    assert "an inner reason" not in text


def test_reason_of_an_extension_is_told(office, stranger, filed):
    office.send(f"/requests/{filed[0]}/actions/extend", reason="there are very many requests")
    assert "there are very many requests" in ask(stranger, filed[1]).text


def test_rejected_and_withdrawn_requests_say_so(office, stranger, filed):
    rejected = re.search("(?:[A-Z2-7]{4}-){7}[A-Z2-7]{4}", office.send("/requests", 201, user_id="nobody").text)[0]
    assert "nothing to erase" in ask(stranger, rejected).text
    office.send(f"/requests/{filed[0]}/actions/withdraw", reason="changed their mind")
    text = ask(stranger, filed[1]).text
    assert "taken back" in text
    assert "changed their mind" not in text


def test_certificate_can_be_saved_once_erased(stranger, erased, filed, shop):
    assert "is erased" in ask(stranger, erased).text
    for kind in ("html", "json"):
        answer = ask(stranger, erased, "/receipt/certificate", kind=kind)
        assert answer.content == (shop.folder / "certificates" / f"{filed[0]}.{kind}").read_bytes()
        assert answer.headers["content-disposition"] == f'attachment; filename="certificate-{filed[0]}.{kind}"'


def test_person_finds_the_certificate_to_be_about_them(stranger, erased, users):
    text = ask(stranger, erased, "/receipt/check", user_id=users[0]).text
    assert "this certificate is about you" in text
    answer = ask(stranger, erased, "/receipt/file", user_id=users[0])
    assert answer.headers["content-disposition"].startswith("attachment")
    assert read_receipt(answer.content).user_id == users[0]


def test_another_person_is_told_it_is_not_about_them(stranger, erased, users):
    for address in ("/receipt/check", "/receipt/file"):
        answer = ask(stranger, erased, address, user_id=users[1])
        assert "about another user id" in answer.text
        assert "content-disposition" not in answer.headers


def test_items_count_too(office, stranger, shop, users, clock, worker):
    item = sorted(shop.live.dataset.items_of(users[0]))[0]
    _, code = office.submit(users[0], item)
    clock.advance(days=6)
    worker.step()
    assert "about another" in ask(stranger, code, "/receipt/check", user_id=users[0]).text
    assert "is about you" in ask(stranger, code, "/receipt/check", user_id=users[0], items=f" {item} ").text


def test_a_case_number_stands_in_the_receipt_of_whoever_knows_it(office, stranger, shop, users, clock, worker):
    request_id, code = office.submit(users[0], reference="case-kxqz-of-ours")
    clock.advance(days=6)
    worker.step()
    assert "kxqz" not in (shop.folder / "certificates" / f"{request_id}.json").read_text()
    wrong = ask(stranger, code, "/receipt/check", user_id=users[0], reference="case-4712")
    assert "another case number" in wrong.text
    for known, expected in (("case-kxqz-of-ours", "case-kxqz-of-ours"), ("", None)):
        answer = ask(stranger, code, "/receipt/file", user_id=users[0], reference=known)
        receipt = read_receipt(answer.content)
        assert (receipt.format, receipt.reference) == (2, expected)


def test_hostile_code_is_escaped(stranger, erased):
    text = ask(stranger, f'{erased}">').text
    assert f'{erased}&#34;&gt;"' in text


@pytest.mark.parametrize(
    ("days", "told"), [(0, "by 9 November 2026"), (10, "by 30 November 2026"), (40, "as soon as possible")]
)
def test_no_date_in_the_past_is_promised(stranger, code, clock, days, told):
    clock.advance(days=days)
    assert f"will be erased {told}" in ask(stranger, code).text
