"""Ctrl-C: every command ends soon, with one line, whatever it is doing, and nothing is left half done."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from erasable.interrupts import STOPPED, STOPPED_AT_ONCE
from kit.choosing import some
from kit.interrupting import COMMAND, MODELS, Service, press

IN_ORDER, AT_ONCE = f"erasable: {STOPPED}\n", f"erasable: {STOPPED_AT_ONCE}\n"
LONG_COMMANDS = [
    *(f"learn {model}" for model in MODELS),
    *("learn --more", "forget", "verify", "evaluate", "recommend", "scan", "plan", "groups", "attack"),
    *("reproduce", "data make", "demo"),
]


@pytest.fixture
def start(tmp_path):
    """Start a process that is ready for Ctrl-C once it has said so on standard output."""
    started = []

    def call(words, **environment) -> subprocess.Popen[str]:
        # A shell that starts the tests in the background has them ignore Ctrl-C, and their children would too.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **environment},
        )
        signal.signal(signal.SIGINT, before)
        started.append(process)
        said = iter(process.stdout.readline, "")
        assert "ready\n" in said, process.communicate()
        return process

    yield call
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def guard(start):
    """Run a few lines as a command under the guard; `grace` is how long it waits for an end in order."""

    def call(lines: str, grace: float = 0.5) -> subprocess.Popen[str]:
        body = "\n".join(f"    {line}" for line in lines.strip().splitlines())
        script = (
            f"import sys, threading, time\nfrom erasable import interrupts\ninterrupts._GRACE_SECONDS = {grace}\n"
            f"def ready():\n    print('ready', flush=True)\ndef command():\n{body}\ninterrupts.guarded(command)\n"
        )
        return start([sys.executable, "-c", script])

    return call


def outcome(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    timer = threading.Timer(60, process.kill)
    timer.start()
    # Not communicate: it would lose what was read ahead with the first line.
    out, err = process.stdout.read(), process.stderr.read()
    timer.cancel()
    return process.wait(), out, err


HANGS = {
    "waiting in compiled code for the lock of imports": """
import _imp
held = threading.Event()
threading.Thread(target=lambda: (_imp.acquire_lock(), held.set(), time.sleep(600)), daemon=True).start()
held.wait()
threading.Timer(1, ready).start()
_imp.acquire_lock()
""",
    "tidying up for ever": """
try:
    ready()
    time.sleep(600)
finally:
    time.sleep(600)
""",
}


@pytest.mark.parametrize("hang", HANGS)
def test_a_process_that_does_not_end_is_ended_with_one_line(guard, hang):
    process = guard(HANGS[hang])
    press(process, everyone=False)
    assert outcome(process) == (130, "", AT_ONCE)


@pytest.mark.parametrize("hang", HANGS)
def test_a_second_ctrl_c_ends_the_process_at_once(guard, hang):
    process = guard(HANGS[hang], grace=600)
    press(process, everyone=False)
    time.sleep(2)
    press(process, everyone=False)
    assert outcome(process) == (130, "", AT_ONCE)


def test_a_ctrl_c_that_is_sent_twice_by_whoever_passes_it_on_is_one(guard):
    process = guard(
        "try:\n    ready()\n    time.sleep(600)\nfinally:\n    time.sleep(0.5)\n    print('tidy')", grace=600
    )
    press(process, everyone=True)
    press(process, everyone=False)
    assert outcome(process) == (130, "tidy\n", IN_ORDER)


def test_threads_that_wait_for_ever_keep_no_process_from_ending_in_order(guard):
    process = guard("threading.Thread(target=time.sleep, args=(600,)).start()\nready()\ntime.sleep(600)", grace=600)
    press(process, everyone=False)
    assert outcome(process) == (130, "", IN_ORDER)


def test_what_ctrl_c_breaks_off_is_no_error_of_its_own(guard):
    lines = (
        "try:\n    ready()\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    raise AttributeError('half a module')"
    )
    process = guard(lines)
    press(process, everyone=False)
    assert outcome(process) == (130, "", IN_ORDER)


def test_what_libraries_in_c_print_of_it_is_not_shown(guard):
    lines = """
try:
    ready()
    time.sleep(600)
except KeyboardInterrupt as error:
    sys.excepthook(type(error), error, error.__traceback__)
    raise ImportError("an extension could not be loaded")
"""
    process = guard(lines)
    press(process, everyone=False)
    assert outcome(process) == (130, "", IN_ORDER)


def test_a_failure_without_ctrl_c_is_shown(guard):
    code, _, err = outcome(guard("ready()\nraise AttributeError('a fault')"))
    assert (code, err.splitlines()[-1]) == (1, "AttributeError: a fault")


LOST = {
    "in a finaliser": """
class Last:
    def __del__(self):
        ready()
        time.sleep(600)
Last()
time.sleep(600)
""",
    "in a library that takes it for a failed import": """
try:
    ready()
    time.sleep(600)
except BaseException:
    pass
time.sleep(600)
""",
}


@pytest.mark.parametrize("lost", LOST)
def test_a_ctrl_c_that_gets_lost_comes_again(guard, lost):
    process = guard(LOST[lost], grace=600)
    press(process, everyone=False)
    assert outcome(process) == (130, "", IN_ORDER)


@pytest.mark.parametrize("ending", ["finally:", "except KeyboardInterrupt:"])
def test_what_is_tidied_up_is_not_interrupted_again(guard, ending):
    process = guard(
        f"try:\n    ready()\n    time.sleep(600)\n{ending}\n    time.sleep(1)\n    print('tidy')", grace=600
    )
    press(process, everyone=False)
    assert outcome(process)[1] == "tidy\n"


def test_a_command_that_is_done_waits_for_no_thread_and_keeps_its_outcome(guard):
    process = guard("threading.Thread(target=time.sleep, args=(600,)).start()\nready()\nprint('done')\nsys.exit(3)")
    assert outcome(process) == (3, "done\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_result_that_could_not_be_written_is_an_error():
    script = "from erasable.interrupts import guarded\nguarded(lambda: print('lost'))"
    with open("/dev/full", "w") as full:
        ended = subprocess.run([sys.executable, "-c", script], stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode != 0
    assert b"No space left" in ended.stderr


def test_who_works_for_a_process_that_is_ended_ends_too(guard):
    lines = """
import multiprocessing
worker = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
with interrupts.kept_from_children():
    worker.start()
try:
    ready()
    time.sleep(600)
finally:
    print(worker.pid, flush=True)
    time.sleep(600)
"""
    process = guard(lines)
    press(process, everyone=True)
    code, out, err = outcome(process)
    assert (code, err) == (130, AT_ONCE)
    end = time.monotonic() + 10
    while Path(f"/proc/{int(out)}/cmdline").exists() and Path(f"/proc/{int(out)}/cmdline").read_bytes():
        assert time.monotonic() < end, "the worker lives on"
        time.sleep(0.05)


def test_who_ignores_ctrl_c_goes_on_ignoring_it():
    script = (
        "import os, signal\nfrom erasable.interrupts import guarded\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "guarded(lambda: (os.kill(os.getpid(), signal.SIGINT), print('on')))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "on\n", "")


@pytest.mark.full
def test_the_library_leaves_ctrl_c_alone():
    script = (
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nimport erasable\n"
        "erasable.Recommender()\nassert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "assert signal.set_wakeup_fd(-1) == -1"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_entry_point_loads_nothing_but_the_guard():
    script = "import sys, erasable.__main__, erasable.interrupts\nprint(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in loaded if name.startswith("erasable")}
    assert ours == {"erasable", "erasable.__main__", "erasable.interrupts"}
    assert not {"numpy", "pyarrow", "typer", "rich", "numba"} & set(loaded)


@pytest.mark.parametrize(("module", "words"), [("pydantic", ["status", "."]), ("uvicorn", ["serve", "{shop}"])])
@pytest.mark.parametrize("everyone", some([True, False], 1))
def test_ctrl_c_while_the_command_is_loaded_is_one_line(start, shop, tmp_path, module, words, everyone):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / f"{module}.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(600)\n")
    words = [word.format(shop=shop) for word in words]
    process = start([str(COMMAND), *words], PYTHONPATH=str(tmp_path / "slow"))
    press(process, everyone)
    assert outcome(process) == (130, "", IN_ORDER)


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupts")
    return Service(folder, users=90).trials()


def test_every_long_command_is_interrupted(trials):
    assert list(trials) == LONG_COMMANDS


@pytest.mark.full
@pytest.mark.parametrize("name", LONG_COMMANDS)
def test_a_command_ends_in_time_wherever_it_is_interrupted(trials, name, tmp_path):
    trial, moments = trials[name], random.Random(name)
    # The longest are not run to their end just to know how long they take.
    seconds = 4.0 if name in ("attack", "reproduce", "demo") else trial.seconds(tmp_path / "place")
    times = 3 if name.split()[-1] in MODELS else 10
    ends = [
        trial.interrupt(tmp_path / "place", moments.uniform(0, seconds), everyone=number % 2 == 0)
        for number in range(times)
    ]
    print(f"{name}: {[(end.way, round(end.seconds, 2)) for end in ends]}")
    assert [end for end in ends if not end.is_right] == []
