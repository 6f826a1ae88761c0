"""Answers that are repeated: sealed with the caller's key, one at a time."""

import pytest

from erasable.errors import Refused, WrongUse
from erasable.service.answers import Answers
from erasable.store.layout import LEDGER


@pytest.fixture
def answers(ledger):
    return Answers(ledger)


def test_the_same_key_and_body_get_the_same_answer(answers):
    assert answers.earlier("key", b"body") is None
    answers.keep("key", b"body", b"answer")
    assert answers.earlier("key", b"body") == b"answer"
    assert answers.earlier("another", b"body") is None


def test_the_same_key_with_another_body_is_refused(answers):
    answers.keep("key", b"body", b"answer")
    with pytest.raises(WrongUse, match="another body"):
        answers.earlier("key", b"other")


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


def test_the_ledger_shows_neither_key_nor_body_nor_answer(answers, ledger, folder):
    answers.keep("some-long-key", b"fay-the-unmistakable", b"an-answer-with-a-code")
    ledger.wipe()
    left = b"".join(path.read_bytes() for path in folder.glob(f"{LEDGER}*"))
    for secret in (b"some-long-key", b"fay-the-unmistakable", b"an-answer-with-a-code"):
        assert secret not in left
