"""Logs: one JSON object a line."""

import json
import logging

from erasable.service.settings import log, log_everything_as_json, log_failure


def test_a_line_is_one_object_with_a_time(capsys):
    log("request received", request_id="1")
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["request_id"]) == ("request received", "1")
    assert line["at"].endswith("+00:00")


def test_no_line_can_be_forged(capsys):
    log("request failed", error='x"\n{"event": "forged"}')
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_an_error_is_told_by_its_kind_and_place_and_not_by_what_it_says(capsys):
    try:
        raise RuntimeError("fay-the-unmistakable")
    except RuntimeError as error:
        log_failure("it failed", error)
    line = json.loads(capsys.readouterr().err)
    assert line["error"] == "RuntimeError"
    assert line["where"][0].startswith(__file__)
    assert "fay" not in str(line)


def test_what_libraries_say_is_a_line_too_without_what_they_fill_in(capsys):
    before = logging.getLogger().handlers[:], logging.getLogger().level
    try:
        log_everything_as_json()
        logging.getLogger("uvicorn.error").warning("refused %s", "fay-the-unmistakable")
    finally:
        logging.getLogger().handlers[:] = before[0]
        logging.getLogger().setLevel(before[1])
    assert json.loads(capsys.readouterr().err)["event"] == "refused %s"
