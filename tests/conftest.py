"""The kit as fixtures: what tests of several units share, by the name of its module in tests/kit."""

import gc
import os
import shutil
import sys
from importlib.metadata import EntryPoints
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from types import ModuleType

import pytest

from erasable import extensions
from erasable.chain import counts
from erasable.chain.buckets import Bucket
from kit import agreement as _agreement
from kit import chains as _chains
from kit import choosing
from kit import kernel_slopes as _kernel_slopes
from kit import reference as _reference
from kit import tables as _tables
from kit.copies import copy_of
from kit.postgres_server import NoPostgres, PostgresServer
from kit.remembering import Remembering

_IN_MEMORY = Path("/dev/shm")
_ROOM = 4 * 2**30

# Thousands of flushes take long on a busy disk. What passes leaves nothing behind (pyproject.toml). Each run has a root
# of its own, which the processes that it starts share: what another run removes is none of its folders.
_OWN_ROOT = "PYTEST_DEBUG_TEMPROOT" not in os.environ
if _OWN_ROOT and os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free >= _ROOM:
    os.environ["PYTEST_DEBUG_TEMPROOT"] = mkdtemp(prefix="erasable-tests-", dir=_IN_MEMORY)


def pytest_configure(config):
    choosing.quick_only = config.option.markexpr == "not full"


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    """Keep Python from looking through thousands of tests again and again for what nobody needs any more."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """Remove the root of this run, unless something failed whose folders somebody may want to look at."""
    root = Path(os.environ.get("PYTEST_DEBUG_TEMPROOT", ""))
    if _OWN_ROOT and root.parent == _IN_MEMORY and exitstatus == pytest.ExitCode.OK:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _packages_looked_through_once():
    """What packages register is read anew at each erasure, from hundreds of files: here it is once for these folders.

    A test that has Python look into further folders sees what is there.
    """
    folders, look, known = [*sys.path], extensions.entry_points, {}

    def found(group: str) -> EntryPoints:
        if sys.path != folders:
            return look(group=group)
        if group not in known:
            known[group] = look(group=group)
        return known[group]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extensions, "entry_points", found)
        yield


@pytest.fixture(scope="session")
def agreement() -> ModuleType:
    return _agreement


@pytest.fixture(scope="session")
def chains() -> ModuleType:
    return _chains


@pytest.fixture(scope="session")
def kernel_slopes() -> ModuleType:
    return _kernel_slopes


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    return _reference


@pytest.fixture(scope="session")
def tables() -> ModuleType:
    return _tables


@pytest.fixture
def reporter() -> Remembering:
    return Remembering()


@pytest.fixture
def hashed(monkeypatch):
    """The people whose rows are hashed, slot by slot, as often as they are."""
    found, begin = [], counts._Hashing.__init__

    def counted(hashing: object, bucket: Bucket, ordered: bool) -> None:
        found.append((bucket.training.digest(), bucket.held_out.digest()))
        begin(hashing, bucket, ordered)

    monkeypatch.setattr(counts._Hashing, "__init__", counted)
    return found


@pytest.fixture
def swift_path(tmp_path):
    """A folder in memory, where there is one, that other users could be let into: tmp_path is in one of our own."""
    if not os.access(_IN_MEMORY, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir=_IN_MEMORY) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def copied():
    """Copy a workspace, and return where to."""

    def copy(source: Path, target: Path) -> Path:
        return copy_of(source, target)

    return copy


@pytest.fixture(scope="session")
def postgres():
    """A private Postgres, made once; who stops or kills it starts it again."""
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    try:
        server = PostgresServer()
    except NoPostgres as reason:
        pytest.skip(str(reason))
    try:
        server.start()
        yield server
    finally:
        server.remove()
