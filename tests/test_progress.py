"""Progress: what others write down is told as if it were made here, and whoever hears nothing is told nothing."""

from contextlib import contextmanager

import pytest

from erasable.progress import SILENT, Progress, Silent, ignore, retelling


class Listener(Silent):
    """Writes down each step with its size, what was done of it, and when it ended."""

    def __init__(self):
        self.heard = []

    @contextmanager
    def track(self, label, total=None):
        self.heard.append((label, total))
        try:
            yield self.heard.append
        finally:
            self.heard.append(f"end of {label}")


def test_the_progress_of_others_is_told_step_by_step():
    listener = Listener()
    with retelling(listener, "waiting") as tell:
        for progress in (
            None,
            Progress("one", "forgetting", 10, 100),
            Progress("one", "forgetting", 10, 100),
            Progress("one", "forgetting", 60, 100),
            None,
            Progress("one", "scanning", 5, None),
            Progress("two", "scanning", 2, None),
        ):
            tell(progress)
    assert listener.heard == [
        *(("waiting", None), "end of waiting"),
        *(("forgetting", 100), 10, 0, 50, "end of forgetting"),
        *(("scanning", None), 5, "end of scanning"),
        *(("scanning", None), 2, "end of scanning"),
    ]


def test_an_error_ends_the_step():
    listener = Listener()
    with pytest.raises(KeyError), retelling(listener, "waiting"):
        raise KeyError
    assert listener.heard == [("waiting", None), "end of waiting"]


@pytest.mark.parametrize(("done", "total", "share"), [(25, 100, 0.25), (120, 100, 1.0), (3, None, None), (0, 0, None)])
def test_a_share_is_known_if_the_size_is(done, total, share):
    assert Progress("one", "scanning", done, total).share == share


def test_silence_ignores_what_is_done():
    with SILENT.track("work", 3) as advance:
        assert advance is ignore
        advance(3)
