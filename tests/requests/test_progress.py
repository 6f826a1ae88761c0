"""How far the worker has come, for whoever looks."""

from erasable.progress import Progress
from erasable.requests.lease import Lease, QueueReporter, read_progress


def test_progress_is_written_and_cleared(database):
    lease = Lease(database, 60)
    lease.take()
    reporter = QueueReporter(lease, "batch 1")
    assert read_progress(database) is None
    with reporter.track("forgetting", 100) as advance:
        advance._written = 0
        advance(25)
        found = read_progress(database)
        assert found == Progress("batch 1", "forgetting", 25, 100)
        assert found.share == 0.25
    reporter.clear()
    assert read_progress(database) is None


def test_of_an_unknown_size_no_share_is_known():
    assert Progress("batch 1", "scanning", 0, None).share is None
