"""Answers that are repeated: sealed with the caller's key, one at a time."""

import pytest

from erasable.errors import Refused, WrongUse
from erasable.requests.tokens import AnsweredBefore, Answers
from erasable.workspace.files import QUEUE_FILE


@pytest.fixture
def answers(database):
    return Answers(database)


def test_the_same_key_and_body_get_the_same_answer(answers):
    assert answers.earlier("key", b"body") is None
    answers.keep("key", b"body", b"answer")
    assert answers.earlier("key", b"body") == b"answer"
    assert answers.earlier("another", b"body") is None


def test_the_same_key_with_another_body_is_refused(answers):
    answers.keep("key", b"body", b"answer")
    with pytest.raises(WrongUse, match="another body"):
        answers.earlier("key", b"other")


def test_what_is_done_for_an_answer_is_taken_back_where_another_server_was_quicker(database, answers):
    answers.keep("key", b"body", b"first")

    def late(connection):
        connection.execute("INSERT INTO visits VALUES ('done', '1', 0)")
        answers.keep("key", b"body", b"second")

    with pytest.raises(AnsweredBefore) as told:
        database.change(late)
    assert told.value.answer == answers.earlier("key", b"body") == b"first"
    assert database.read(lambda connection: connection.execute("SELECT * FROM visits")) == []


def test_while_one_is_answered_another_under_its_key_is_refused(answers):
    with answers.under("key"):
        with pytest.raises(Refused, match="being answered"), answers.under("key"):
            pass
        with answers.under("another"):
            pass
    with answers.under("key"):
        pass


def test_a_failure_leaves_the_key_free(answers):
    with pytest.raises(KeyError), answers.under("key"):
        raise KeyError
    with answers.under("key"):
        pass


def test_the_queue_shows_neither_key_nor_body_nor_answer(in_file, folder):
    answers = Answers(in_file)
    answers.keep("some-long-key", b"fay-the-unmistakable", b"an-answer-with-a-code")
    in_file.wipe()
    left = b"".join(path.read_bytes() for path in folder.glob(f"{QUEUE_FILE}*"))
    for secret in (b"some-long-key", b"fay-the-unmistakable", b"an-answer-with-a-code"):
        assert secret not in left
