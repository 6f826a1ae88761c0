import pytest

from erasable.errors import Refused
from erasable.models import machine as memory


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Return a folder in which a system describes itself: 1,000 KiB are available, no group is known."""
    (tmp_path / "meminfo").write_text("MemTotal:  4000 kB\nMemAvailable:  1000 kB\n")
    monkeypatch.setattr(memory, "_SYSTEM", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_OWN_GROUP", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")
    return tmp_path


def in_group(system, limit, current, files):
    folder = system / "groups" / "box"
    folder.mkdir(parents=True)
    (system / "cgroup").write_text("0::/box\n")
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{current}\n")
    (folder / "memory.stat").write_text(f"anon 1\nfile {files}\n")


def test_what_the_system_has_left_is_available(system):
    assert memory.available_memory() == 1000 * 1024


@pytest.mark.parametrize(
    ("limit", "available"), [(5000, 4600), (100, 0), ("max", 1000 * 1024), (10**9, 1000 * 1024)], ids=str
)
def test_a_group_s_limit_counts_if_it_leaves_less_and_pages_of_files_give_way(system, limit, available):
    in_group(system, limit, current=1000, files=600)
    assert memory.available_memory() == available


def test_where_nothing_is_known_the_whole_memory_counts(system):
    (system / "meminfo").unlink()
    assert memory.available_memory() > 2**20


def test_only_what_exceeds_memory_is_refused(system):
    memory.refuse_beyond_memory("ease", 7, 1000 * 1024, "less")
    with pytest.raises(Refused, match=r"7 items .*: give less, drop"):
        memory.refuse_beyond_memory("ease", 7, 1000 * 1024 + 1, "less")


def test_this_machine_has_memory():
    assert memory.available_memory() > 2**20
