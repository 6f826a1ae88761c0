"""What learning says about its input is logged by the library, in the words of the command."""

import logging

import pyarrow as pa

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
