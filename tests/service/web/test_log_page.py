"""The page of the log: records, journal, tokens, and a verification that the worker carries out."""


def test_verification_is_asked_for_and_its_outcome_shown(office, shop, worker):
    assert "The service has verified nothing yet." in office.get("/log")
    assert office.send("/log/verify").headers["location"] == "/log"
    text = office.get("/log")
    assert "A verification is under way" in text
    assert ">Verify</button>" not in text
    assert worker.step()
    text = office.get("/log")
    assert "<strong>Same bytes.</strong>" in text
    assert ">Verify</button>" in text
    assert "(same bytes)" in text


def test_records_and_journal_go_together(office, users, clock, worker):
    request_id, _ = office.submit(users[0])
    clock.advance(days=6)
    worker.step()
    text = office.get("/log")
    assert "The log is intact" in text
    assert 'forget <span class="quiet">(1 certificate)</span>' in text
    assert text.count(f'href="/requests/{request_id}"') == 5
    assert users[0] not in text


def test_journal_goes_on(office, users, monkeypatch):
    monkeypatch.setattr("erasable.service.web._overview._EVENTS_SHOWN", 2)
    office.submit(users[0])
    assert 'href="/log?before=2#journal"' in office.get("/log")
    assert "Received: all data of one person" in office.get("/log?before=3")


def test_tokens_are_listed_and_not_shown(office, shop):
    text = office.get("/log")
    assert shop.tokens.all()[0].number in text
    assert office.token not in text


def test_the_earlier_address_leads_to_the_log(office):
    found = office.client.get("/audit", follow_redirects=False)
    assert (found.status_code, found.headers["location"]) == (308, "/log")
