"""Commands that a later version brings: refused with exit code 2, whatever is given to them."""

import pytest


@pytest.mark.parametrize(
    "words",
    [
        ("serve",),
        ("serve", "shop", "--port", "80"),
        ("token", "add", "--name", "worker", "--json"),
    ],
)
def test_it_says_that_it_is_not_there_yet(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    result = run(*words)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"erasable: {words[0]} is not there yet: it comes with a later version\n"
    assert list(tmp_path.iterdir()) == []
