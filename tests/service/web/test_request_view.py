"""What the page of a request shows of its clock, of its groups, and of how far the work is."""

import re

from erasable.requests.lease import QueueReporter


def test_bar_runs_until_now_and_stops_when_done(office, page, clock):
    def filled() -> float:
        return float(re.search(r'class="run" y="6" width="([\d.]+)%"', office.get(page)).group(1))

    assert filled() == 0
    clock.advance(days=15)
    assert 40 < filled() < 45  # between the third mark of six and the fourth
    office.send(f"{page}/actions/withdraw", reason="changed their mind")
    before = filled()
    clock.advance(days=100)
    assert filled() == before


def test_alarm_that_has_passed_stands_out(office, page, clock):
    assert '<li class="bad"><b>Alarm' not in office.get(page)
    clock.advance(days=22)
    text = office.get(page)
    assert '<li class="bad"><b>Alarm' in text
    assert '<li class="bad"><b>Limit' not in text


def test_outcome_shows_groups_cost_and_utility(office, erased, shop):
    text = office.get(erased)
    stages = shop.live.dataset.stages
    assert len(re.findall(r'<li class="(?:kept|run-again)">', text)) == stages
    assert re.search(r"Cost, against retraining all</dt><dd>(none|&lt; \d+ %|more)</dd>", text)
    assert "Time</dt><dd>&lt; 10 minutes</dd>" in text
    assert re.search(r"Rounded to steps of [\d.]+, so that nobody can be identified", text)
    assert "Hit rate in the first 10" in text
    grain = re.search(r"Rounded to steps of ([\d.]+),", text)[1]
    decimals = len(grain.partition(".")[2])
    measures = re.findall(r"<td>(\d(?:\.\d+)?)</td>", text)
    assert measures
    assert {len(one.partition(".")[2]) for one in measures} == {decimals}


def test_outcome_of_0_1_is_shown_as_it_was_written(office, shop, worker, page, request_id):
    for state in ("erasing", "certifying"):
        shop.queue.advance(request_id, state, "worker", shop.clock(), {"batch": "abc", "requests": 1})
    utility = {"before": None, "after": {"hr@10": 0.5}}
    facts = {"cost_ratio": 0.125, "seconds": 12.3, "stages_rerun": 1, "stages_total": 2, "kept": [True, False]}
    facts |= {"files_searched": 9, "utility": utility, "version": 2}
    shop.queue.advance(request_id, "erased", "worker", shop.clock(), facts)
    text = office.get(page)
    assert "<dd>12.5 %</dd>" in text
    assert "<dd>12.3 s</dd>" in text
    assert "Rounded, so that nobody can be identified" in text


def test_progress_is_that_of_the_own_batch(office, shop, worker, page, request_id):
    facts = {"batch": "abc", "requests": 1, "stages_rerun": 2, "stages_total": 3, "rerun": [1, 2]}
    shop.queue.advance(request_id, "erasing", "worker", shop.clock(), facts)
    worker.lease.take()
    for batch, running in (("abc", True), ("other", False)):
        with QueueReporter(worker.lease, batch).track("forgetting", 10) as advance:
            advance(5)
            advance.write()
            text = office.get(f"{page}/progress")
        assert ('value="0.5"' in text) == running
    assert re.findall(r'<li class="([\w-]+)"', text) == ["kept", "rolled-back", "rolled-back"]


def test_progress_of_what_is_gone_on_with_is_shown(office, shop, worker, page, request_id):
    shop.queue.advance(request_id, "erasing", "worker", shop.clock(), {"batch": "abc", "requests": 1})
    shop.queue.note(request_id, "resumed", "worker", shop.clock(), {"batch": "another", "lease": 2})
    worker.lease.take()
    for batch, running in (("another", True), ("learning", False)):
        with QueueReporter(worker.lease, batch).track("scanning"):
            assert ("Searching the files" in office.get(f"{page}/progress")) == running


def test_steps_are_run_again_as_the_work_goes_on(office, shop, worker, page, request_id):
    facts = {"batch": "abc", "requests": 1, "stages_rerun": 3, "stages_total": 3, "rerun": [0, 1, 2]}
    shop.queue.advance(request_id, "erasing", "worker", shop.clock(), facts)
    worker.lease.take()
    with QueueReporter(worker.lease, "abc").track("forgetting", 9) as advance:
        advance(6)
        advance.write()
    fates = re.findall(r'<li class="([\w-]+)"', office.get(f"{page}/progress"))
    assert fates == ["run-again", "run-again", "rolled-back"]
    shop.queue.advance(request_id, "certifying", "worker", shop.clock())
    assert "rolled-back" not in office.get(f"{page}/progress")


def test_progress_is_a_part_and_no_page(office, page):
    text = office.get(f"{page}/progress")
    assert text.lstrip().startswith('<div id="work"')
    assert "<html" not in text


def test_ended_request_is_not_asked_for_again(office, erased):
    assert "data-live" not in office.get(erased)


def test_failure_says_whether_something_was_changed(office, page, request_id, fail):
    fail(request_id)
    assert "failed and changed nothing" in office.get(page)
