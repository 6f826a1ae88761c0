"""Submitting a request: its code is shown once, and what is not held is said."""


def test_submitted_request_shows_its_code_once(office, users):
    request_id, code = office.submit(users[0])
    assert code not in office.get(f"/requests/{request_id}")
    assert code not in office.get("/requests")


def test_second_request_of_a_person_joins_the_first(office, users):
    first, second = office.submit(users[0]), office.submit(users[0])
    assert first == second


def test_code_is_shown_again_to_who_submitted_it_only(shop, office, users):
    office.submit(users[0])
    other = type(office)(shop).sign_in()
    text = other.send("/requests", 201, user_id=users[0]).text
    assert "<h1>Request joined</h1>" in text
    assert "given to whoever submitted it first" in text
    assert "<h2>Receipt code</h2>" not in text


def test_unknown_person_is_told_to_be_unknown(office):
    text = office.send("/requests", 201, user_id="nobody").text
    assert "<h1>Nothing to erase</h1>" in text


def test_items_are_taken_one_a_line(shop, office, users):
    item = sorted(shop.live.dataset.items_of(users[0]))[0]
    request_id, _ = office.submit(users[0], f"{item}\r\n\r\nother item\r\n")
    assert shop.queue.subjects([request_id])[0].items == (item, "other item")


def test_empty_user_id_is_refused(office):
    office.send("/requests", 422, user_id="")


def test_near_ids_are_told_to_whoever_submits_a_request_here(office, users):
    text = office.send("/requests", 201, user_id=users[0].upper()).text
    assert "<h1>Nothing to erase</h1>" in text
    assert "Nothing under this id; ids that differ only in upper and lower case are held: 1." in text
    assert "differ only" not in office.send("/requests", 201, user_id="nobody").text
