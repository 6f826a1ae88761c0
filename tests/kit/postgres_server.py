"""A Postgres of the tests' own: on a socket in a temporary folder; it can be stopped, killed and restarted."""

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

_START_SECONDS = 60
_ROLE = "erasable"
_UNPRIVILEGED = ("postgres", "nobody")  # Postgres refuses to run as root


class NoPostgres(Exception):
    """There is no Postgres that could be started here; the message says why."""


class PostgresServer:
    """A cluster in a folder of its own, and the server that runs on it."""

    def __init__(self, *settings: str) -> None:
        """Make the cluster; the settings are added to its configuration."""
        self._binaries = _binaries()
        self._account = _account()
        self.folder = Path(mkdtemp(prefix="pg"))  # short: a socket's path has 107 characters at most
        self.data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        if self._account is not None:
            os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
        made = self._run("initdb", "--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", f"--username={_ROLE}")
        if made.returncode:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise NoPostgres(f"initdb failed: {made.stderr.decode()[-400:]}")
        lines = [
            "listen_addresses = ''",
            f"unix_socket_directories = '{self.folder}'",
            "fsync = off",  # only processes are killed here, never the machine
            "shared_buffers = 16MB",
            "max_connections = 60",
            *settings,
        ]
        with (self.data / "postgresql.conf").open("a") as configuration:
            configuration.write("\n".join(("", *lines, "")))

    @property
    def address(self) -> str:
        """How it is reached, without a password."""
        return self.address_of("postgres")

    def address_of(self, database: str, host: Path | None = None) -> str:
        """Return how one database is reached, by another socket's folder if one is given."""
        return f"postgresql:///{database}?host={host or self.folder}&user={_ROLE}"

    @property
    def socket(self) -> Path:
        """The socket that it listens on."""
        return self.folder / ".s.PGSQL.5432"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", str(self.data)],
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                **self._who(),
            )
        end = time.monotonic() + _START_SECONDS
        while self._run("pg_isready", "-q", "-h", str(self.folder)).returncode:
            if self._process.poll() is not None or time.monotonic() > end:
                raise NoPostgres(f"the server does not start: {self.log[-600:]}")
            time.sleep(0.02)

    def start_if_stopped(self) -> None:
        """Start it unless it runs."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    @property
    def log(self) -> str:
        """What the server has logged."""
        return (self.folder / "log").read_text(errors="replace")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it; without another word, every connection is cut and all is written (Postgres calls it fast)."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(_START_SECONDS)

    def restart(self) -> None:
        """Stop and start it."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """Kill the server with all its processes, as if the machine had lost its power."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        children = [int(pid) for pid in _read(Path(f"/proc/{process.pid}/task/{process.pid}/children")).split()]
        process.kill()
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(_START_SECONDS)
        while any(Path(f"/proc/{pid}").exists() and _state(pid) not in "ZX" for pid in children):
            time.sleep(0.005)  # a new server refuses to start while one of them has the old memory

    def remove(self) -> None:
        """Stop it, and remove the folder."""
        with suppress(subprocess.TimeoutExpired):
            self.stop(signal.SIGQUIT)
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def files(self) -> list[Path]:
        """Return every file of the cluster: tables, indexes, the log of changes, whatever else there is."""
        return sorted(path for path in self.data.rglob("*") if path.is_file() and not path.is_symlink())

    def _who(self) -> dict[str, object]:
        if self._account is None:
            return {}
        return {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "PGDATA": str(self.data), "LC_ALL": "C"}
        command = [self._binaries / program, *arguments]
        return subprocess.run(command, capture_output=True, cwd="/", env=environment, check=False, **self._who())


@contextmanager
def private_postgres(*settings: str) -> Iterator[PostgresServer]:
    """Run a Postgres for a block; NoPostgres where there is none."""
    server = PostgresServer(*settings)
    try:
        server.start()
        yield server
    finally:
        server.remove()


def _binaries() -> Path:
    """Return the newest binaries of the Debian package, or those in the path."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if found:
        return max(found, key=lambda path: float(path.parent.name))
    program = shutil.which("initdb")
    if program is None:
        raise NoPostgres("no Postgres is installed (on Debian: apt-get install postgresql)")
    return Path(program).resolve().parent


def _account() -> pwd.struct_passwd | None:
    """Return who is to run it, None for whoever runs this."""
    if os.geteuid() != 0:
        return None
    for name in _UNPRIVILEGED:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoPostgres(f"Postgres does not run as root, and none of the users {', '.join(_UNPRIVILEGED)} is there")


def _state(pid: int) -> str:
    return (_read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split() or ["X"])[0]


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
