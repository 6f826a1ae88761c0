"""Requests as CSV: no formula, and nobody named."""

import csv
import io


def test_file_for_spreadsheets_has_no_formula_and_nobody(office, page, request_id, users):
    office.send(f"{page}/actions/hold", reason="=cmd|' /C calc'!A0")
    answer = office.client.get("/requests.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="requests.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert next(row["reason"] for row in rows if row["id"] == request_id) == "'=cmd|' /C calc'!A0"
    assert not any(user in answer.text for user in users[:1])
