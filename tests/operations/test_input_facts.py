"""What learning says about its input is logged by the library, in the words of the command."""

import logging

import pyarrow as pa
import pytest
from pyarrow import parquet

from erasable.errors import Refused
from erasable.operations import Inputs
from erasable.recommender import Recommender

TABLE = pa.table(
    {
        "user": ["ann", "ann", "bob", "cat", "dan"],
        "item": ["a", "a", "a", "c", ""],
        "score": [1, 2, 5, 3, 1],
        "title": ["A"] * 5,
    }
)


def test_the_library_logs_what_it_read(caplog):
    with caplog.at_level(logging.INFO, logger="erasable"):
        recommender = Recommender(model="nmf", groups=2, epochs=1).fit(TABLE, Inputs(on_bad_row="skip"))
    assert [record.message for record in caplog.records if record.name == "erasable"][-3:] == [
        "model: nmf; rating scale: 1–5",
        "columns taken: user, item, rating (score); left: title",
        "rows read: 5; repeated (user, item) pairs dropped: 1; bad rows left out: 1",
    ]
    assert recommender.learned.columns == {"user": "user", "item": "item", "rating": "score"}
    assert recommender.learned.columns_left == ("title",)
    assert (recommender.learned.rows_read, recommender.learned.repeated, recommender.learned.bad_rows) == (5, 1, 1)


def test_learning_more_logs_it_too(caplog):
    recommender = Recommender(model="nmf", groups=2, epochs=1).fit(TABLE.slice(0, 4))
    with caplog.at_level(logging.INFO, logger="erasable"):
        more = recommender.learn_more(pa.table({"user": ["eve", None], "item": ["a", "a"], "score": [4, 4]}), SKIP)
    assert "rows read: 2; repeated (user, item) pairs dropped: 0; bad rows left out: 1" in caplog.messages
    assert (more.model, more.rating_scale, more.bad_rows) == ("nmf", "1–5", 1)


SKIP = Inputs(on_bad_row="skip")


SALES = {"customer_email": ["ann@shop.example", "ann@shop.example", "bob@shop.example"], "sku": [1, 2, 1]}


@pytest.mark.parametrize("settings", [{"model": "ease"}, {"model": "nmf", "groups": 2, "epochs": 1}])
def test_e_mail_addresses_as_ids_are_pointed_out(settings, caplog):
    with caplog.at_level(logging.INFO, logger="erasable"):
        recommender = Recommender(**settings).fit(pa.table(SALES))
        more = recommender.learn_more(pa.table({"customer_email": ["cat@shop.example"], "sku": [2]}))
        synced = recommender.sync(pa.table(SALES))
    assert recommender.learned.columns == {"user": "customer_email", "item": "sku"}
    for notes in (recommender.learned.notes, more.notes, synced.notes):
        assert notes[0].startswith("some user ids are e-mail addresses, and the workspace holds them as they are: ")
    assert [record.message for record in caplog.records].count(more.notes[0]) == 3


def test_other_ids_are_no_reason_for_a_notice():
    recommender = Recommender(model="ease").fit(pa.table({**SALES, "customer_email": ["ann", "ann", "b@b"]}))
    assert recommender.learned.notes == ()


def test_a_folder_and_a_pattern_are_read_as_one_table(tmp_path):
    for number in range(2):
        part = pa.table({"customer_id": [number, number], "sku": ["a", "b"], "created_at": ["2026-01-01 10:00Z"] * 2})
        parquet.write_table(part, tmp_path / f"day-{number}.parquet")
    for source in (tmp_path, f"{tmp_path}/*.parquet"):
        recommender = Recommender(model="ease").fit(source)
        assert (recommender.learned.users, recommender.learned.interactions) == (2, 4)
        assert recommender.learn_more(source).interactions_added == 0
        with pytest.raises(Refused, match=r"all test rows of known users \(4\) are also learned from"):
            recommender.evaluate(source)
