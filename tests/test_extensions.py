"""How an extra is installed: from where erasable itself came."""

import json
from importlib.metadata import PackageNotFoundError

import pytest

from erasable import extensions
from erasable.extensions import install_command


class Installed:
    """What pip has written down about a package."""

    def __init__(self, direct_url: str | None) -> None:
        self._direct_url = direct_url

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._direct_url


@pytest.mark.parametrize(
    ("direct_url", "command"),
    [
        (None, "pip install 'erasable[torch]'"),
        ({"url": "file:///src/it", "dir_info": {"editable": True}}, "pip install -e '/src/it[torch]'"),
        ({"url": "file:///src/it", "dir_info": {}}, "pip install '/src/it[torch]'"),
        ({"url": "file:///my%20own/it", "dir_info": {}}, "pip install '/my own/it[torch]'"),
        (
            {"url": "file:///dist/erasable-1-py3-none-any.whl", "archive_info": {"hash": "sha256=ab"}},
            "pip install '/dist/erasable-1-py3-none-any.whl[torch]'",
        ),
        (
            {"url": "https://host/it.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'erasable[torch] @ git+https://host/it.git@abc'",
        ),
        ({"url": "https://host/e.whl", "archive_info": {}}, "pip install 'erasable[torch] @ https://host/e.whl'"),
    ],
)
def test_an_extra_comes_from_where_erasable_came_from(monkeypatch, direct_url, command):
    written = None if direct_url is None else json.dumps(direct_url)
    monkeypatch.setattr(extensions, "distribution", lambda name: Installed(written))
    assert install_command("torch") == command


def test_where_nothing_is_written_down_it_comes_from_the_registry(monkeypatch):
    def missing(name: str) -> Installed:
        raise PackageNotFoundError(name)

    for found in (missing, lambda name: Installed("no JSON")):
        monkeypatch.setattr(extensions, "distribution", found)
        assert install_command("tune") == "pip install 'erasable[tune]'"
