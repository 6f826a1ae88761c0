"""The page of a request: who asked is hidden until someone wants to know, and the certificate is as it was issued."""

import json
import shutil

from erasable.requests.database import WaitingInteraction
from erasable.service.web._pages import CERTIFICATE_POLICY


def test_person_is_hidden_until_asked_for_and_that_is_written_down(office, shop, page, users, request_id):
    assert users[0] not in office.get(page)
    assert f'<code class="person">{users[0]}</code>' in office.send(f"{page}/reveal", 200).text
    assert users[0] not in office.get(page)
    last = shop.history.get(request_id).events[-1]
    assert (last.name, last.actor) == ("revealed", f"officer {shop.tokens.all()[0].number}")
    assert "Looked at who asked" in office.get("/log")


def test_hostile_id_is_escaped(office, shop):
    hostile = "<img src=x onerror=alert(1)>\"'&"
    shop.intake.add([WaitingInteraction(hostile, "i0001", 3.0, None)])
    request_id, _ = office.submit(hostile)
    text = office.send(f"/requests/{request_id}/reveal", 200).text
    assert "&lt;img src=x onerror=alert(1)&gt;&#34;&#39;&amp;" in text
    assert "<img" not in text


def test_person_is_not_kept_once_erased(office, erased, users):
    text = office.get(erased)
    assert "No longer stored" in text
    assert users[0] not in text
    office.send(f"{erased}/reveal", 409)


def test_certificate_is_served_as_it_was_issued(office, erased, shop):
    name = erased.rpartition("/")[2]
    for kind in ("html", "json"):
        issued = (shop.folder / "certificates" / f"{name}.{kind}").read_bytes()
        assert office.client.get(f"{erased}/certificate.{kind}").content == issued


def test_page_of_a_certificate_may_use_its_own_style_and_nothing_else(office, erased):
    policy = office.client.get(f"{erased}/certificate.html").headers["content-security-policy"]
    assert policy == CERTIFICATE_POLICY
    assert "script-src" not in policy


def test_signed_certificate_is_a_file_to_save(office, erased):
    answer = office.client.get(f"{erased}/certificate.json")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert json.loads(answer.content)["kind"] == "certificate of erasure"


def test_certificate_is_missing_before(office, page):
    assert "there is no certificate" in office.get(f"{page}/certificate.html", 404)


def test_case_number_is_shown_while_who_asked_is_kept(office, shop, users):
    text = office.send("/requests", 201, user_id=users[0], reference=" <b>case 17</b> ").text
    (filed,) = shop.history.open_requests()
    assert filed.reference == "<b>case 17</b>"
    assert "&lt;b&gt;case 17&lt;/b&gt;" in office.get(f"/requests/{filed.request_id}")
    assert "<b>case" not in text


def test_what_is_late_is_called_late_on_every_page(office, stranger, shop, clock, worker, users):
    request_id, code = office.submit(users[0])
    office.send(f"/requests/{request_id}/actions/hold", reason="a court asks")
    clock.advance(days=40)
    assert "late: past the legal time" in office.get("/")
    assert "Open after" in office.get(f"/requests/{request_id}")
    office.send(f"/requests/{request_id}/actions/release")
    while worker.step():
        pass
    assert "Erased after" in office.get(f"/requests/{request_id}")
    assert '<strong class="bad">late</strong>' in office.get("/requests?only=late")
    assert "later than the law allows" in stranger.client.post("/receipt", data={"code": code}).text


def test_request_in_time_is_not_called_late(office, erased):
    assert "after the legal time" not in office.get(erased)
    assert "No request matches" in office.get("/requests?only=late")


def test_where_the_person_is_still_found_is_shown_without_naming_them(office, shop, worker, clock, users):
    user = users[0]
    (shop.folder / "notes").mkdir()
    (shop.folder / "notes" / "called.csv").write_text(f"user_id,said\n{user},hello\n")
    (shop.folder / "notes" / f"user={user}.txt").write_text("a complaint\n")
    (shop.folder / user).mkdir()
    (shop.folder / user / "letters.csv").write_text(f"user_id\n{user}\n")
    request_id, _ = office.submit(user)
    clock.advance(days=8)
    while worker.step():
        pass
    shop.reception.follow()
    assert shop.history.get(request_id).state == "failed"
    text = office.get(f"/requests/{request_id}")
    assert "The data is erased, but it could not be certified." in text
    for place in ("notes/called.csv (column user_id", "notes/… (the name", "…/letters.csv ("):
        assert place in text
    listed = office.get("/requests")
    token = {"Authorization": f"Bearer {office.token}"}
    detail = office.client.get(f"/v1/erasure-requests/{request_id}", headers=token).text
    assert "still found:" in listed
    assert any("notes/called.csv" in place for place in json.loads(detail)["places"])
    for shown in (text, listed, detail, office.get(f"/requests/{request_id}/progress")):
        assert user not in shown
    shutil.rmtree(shop.folder / "notes")
    shutil.rmtree(shop.folder / user)
    office.send(f"/requests/{request_id}/actions/retry")
    while worker.step():
        pass
    shop.reception.follow()
    assert shop.history.get(request_id).state == "erased"
    assert "called.csv" not in office.get(f"/requests/{request_id}")


def test_what_a_request_for_some_items_means_meanwhile_is_shown(office, shop, users):
    item = sorted(shop.live.dataset.items_of(users[0]))[0]
    text = office.send("/requests", 201, user_id=users[0], item_ids=item).text
    assert "the person is not used for recommendations" in text
    (filed,) = shop.history.open_requests()
    assert "not used for recommendations any more" in office.get(f"/requests/{filed.request_id}")
