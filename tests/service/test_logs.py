"""Logs: one JSON object a line."""

import json

from erasable.service.logs import log


def test_a_line_is_one_object_with_a_time(capsys):
    log("request received", request_id="1")
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["request_id"]) == ("request received", "1")
    assert line["at"].endswith("+00:00")


def test_no_line_can_be_forged(capsys):
    log("request failed", error='x"\n{"event": "forged"}')
    assert len(capsys.readouterr().err.splitlines()) == 1
