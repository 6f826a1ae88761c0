"""`--wait`: a command that writes comes after the one that is writing, in processes of their own."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from erasable import Recommender
from erasable.errors import WorkspaceBusy
from erasable.interrupts import STOPPED
from erasable.operations import DiskStorage
from erasable.workspace.files import WRITER_LOCK

HOLDER = """
import sys
from pathlib import Path
from erasable.workspace.files import writer_lock
with writer_lock(Path(sys.argv[1])):
    print("ready", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def writer(shop):
    """Another process that is writing the shop, until it is let go."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, shop], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def wait_until_blocked(process, shop):
    """Wait until a process waits in the kernel for the lock of the writer."""
    number, end = (shop / WRITER_LOCK).stat().st_ino, time.monotonic() + 60
    while not any(
        "->" in line and f" {process.pid} " in line and f":{number} " in line
        for line in Path("/proc/locks").read_text().splitlines()
    ):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, Path("/proc/locks").read_text()
        time.sleep(0.02)


def commands(shop, tmp_path, facts):
    export = tmp_path / "export.csv"
    rows = [(user, item, rating) for user, own in facts.ratings.items() for item, rating in own.items()]
    export.write_text("user_id,item_id,rating\n" + "".join(f"{u},{i},{r}\n" for u, i, r in [*rows, ("zoe", "a", 5)]))
    return {
        "sync": ("sync", export, "--into", shop),
        "learn --more": ("learn", export, "--into", shop, "--more"),
        "learn --again": ("learn", "--into", shop, "--again"),
        "forget": ("forget", shop, "--user", "bob"),
        "upgrade": ("upgrade", shop),
        "items": ("items", shop, "--hide", "a"),
    }


@pytest.mark.parametrize("name", ["sync", "learn --more", "learn --again", "forget", "upgrade", "items"])
def test_it_is_refused_or_waits(run, start_apart, writer, shop, tmp_path, facts, name):
    words = commands(shop, tmp_path, facts)[name]
    refused = run(*words)
    assert (refused.code, "another command is writing" in refused.err) == (1, True)
    waiting = start_apart(*words, "--wait")
    wait_until_blocked(waiting, shop)
    writer.communicate("go\n")
    out, err = waiting.communicate(timeout=120)
    assert (waiting.returncode, err) == (0, "")
    assert out


def test_ctrl_c_ends_the_waiting_with_one_line_and_changes_nothing(start_apart, writer, shop, tmp_path, facts):
    waiting = start_apart(*commands(shop, tmp_path, facts)["sync"], "--wait")
    wait_until_blocked(waiting, shop)
    os.kill(waiting.pid, signal.SIGINT)
    out, err = waiting.communicate(timeout=30)
    assert (waiting.returncode, out, err) == (130, "", f"erasable: {STOPPED}\n")
    writer.communicate("go\n")
    with DiskStorage(shop).reading() as session:
        assert session.stamp.version == 1


def test_two_syncs_at_once_are_done_one_after_the_other(start_apart, shop, tmp_path, facts):
    """The first forgets, and is certified before the second begins."""
    _, export, *words = commands(shop, tmp_path, facts)["sync"]
    fewer = tmp_path / "fewer.csv"
    fewer.write_text("".join(line for line in export.read_text().splitlines(True) if line[:4] != "bob,"))
    both = [start_apart("sync", source, *words, "--forget-missing", "--wait") for source in (fewer, export)]
    for process in both:
        _, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, "")
    with DiskStorage(shop).reading() as session:
        assert session.erasures in (0, 1)  # whichever came first
        assert session.stamp.version in (2, 3)


@pytest.mark.parametrize(
    "words", [("learn", "x.csv", "--into", "new", "--wait"), ("forget", "shop", "--user", "a", "--wait", "--no-wait")]
)
def test_where_it_makes_no_sense_it_is_refused(run, words):
    refused = run(*words)
    assert (refused.code, "--wait" in refused.err) == (2, True)


def test_the_library_waits_too(writer, shop):
    with pytest.raises(WorkspaceBusy):
        Recommender.load(shop).hide_items(["a"])
    patient = Recommender.load(shop, wait=True, progress=False)
    timer = threading.Timer(1, writer.kill)
    timer.start()
    patient.hide_items(["a"])
    assert writer.wait() != 0
    timer.join()
