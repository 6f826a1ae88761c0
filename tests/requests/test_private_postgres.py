"""The Postgres that tests start: unprivileged, on a socket of its own, and as it was after a kill."""

import os
from pathlib import Path

import pytest

from kit import postgres_server
from kit.postgres_server import NoPostgres, PostgresServer, private_postgres

psycopg = pytest.importorskip("psycopg")


def settings(server: PostgresServer) -> dict[str, str]:
    with psycopg.connect(server.address) as connection:
        return dict(connection.execute("SELECT name, setting FROM pg_settings").fetchall())


def test_it_takes_no_tcp_and_is_nobody_special(postgres):
    assert settings(postgres)["listen_addresses"] == ""
    with psycopg.connect(postgres.address) as connection:
        pid = connection.info.backend_pid
        assert Path(f"/proc/{pid}").stat().st_uid != 0 or os.geteuid() != 0


@pytest.mark.parametrize("end", [PostgresServer.kill, PostgresServer.stop])
def test_what_was_committed_is_there_when_it_starts_again(postgres, end):
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    end(postgres)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres.address)
    postgres.start()
    with psycopg.connect(postgres.address) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (7,)


def test_nothing_is_left_of_it(postgres):
    with private_postgres() as other:
        assert settings(other)["fsync"] == "off"
        pid = other._process.pid
    assert not other.folder.exists()
    assert not Path(f"/proc/{pid}").exists()


def test_where_there_is_none_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(postgres_server.Path, "glob", lambda *_: iter(()))
    monkeypatch.setattr(postgres_server.shutil, "which", lambda _: None)
    with pytest.raises(NoPostgres, match="apt-get install postgresql"):
        PostgresServer()
