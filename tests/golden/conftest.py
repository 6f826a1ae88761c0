"""Says at the end of a run where golden bytes came from; adapters of other versions are not for this one to import."""

import pytest

collect_ignore_glob = ["read_*.py"]
_SAID = pytest.StashKey[list[str]]()


@pytest.fixture
def say(request, record_property):
    """Say something that stands in the summary of the run."""

    def say(line: str) -> None:
        record_property("golden", line)
        request.config.stash.setdefault(_SAID, []).append(line)

    return say


def pytest_terminal_summary(terminalreporter, config):
    for line in config.stash.get(_SAID, []):
        terminalreporter.write_line(line)
