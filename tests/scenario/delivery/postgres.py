"""A PostgreSQL server of our own, in a temporary directory, that only a socket in it leads to."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep

START_S_MAX = 60.0
STOP_S_MAX = 30.0
LOOK_AGAIN_AFTER_S = 0.05
# Who is not root is the server's user; the server refuses to be root's.
USER = "postgres"
COMMANDS = ("initdb", "postgres", "pg_isready")
# Debian keeps most of them apart, by version.
PLACES = os.pathsep.join([os.environ.get("PATH", ""), *sorted(glob("/usr/lib/postgresql/*/bin"))])
# A kill of the program leaves the server's memory as it is, so the disk need not be waited for.
OPTIONS = ("-c", "listen_addresses=", "-c", "fsync=off")


def why_not() -> str | None:
    """What is missing here."""
    absent = [command for command in COMMANDS if _found(command) is None]
    if absent:
        return f"no PostgreSQL server here: {', '.join(absent)} not found"
    if find_spec("psycopg") is None:
        return "psycopg is not installed"
    if os.geteuid() == 0 and USER not in {each.pw_name for each in pwd.getpwall()}:
        return f"PostgreSQL does not run as root, and there is no user {USER}"
    return None


def _found(command: str) -> str | None:
    return shutil.which(command, path=PLACES)


@contextmanager
def postgres() -> Iterator[str]:
    """Started, until the end of the block. Gives the address of its database."""
    # Not below a directory of pytest's: those are closed to other users.
    with tempfile.TemporaryDirectory(prefix="barnabas-postgres-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        user = USER if os.geteuid() == 0 else None
        if user is not None:
            shutil.chown(root, user)
        data, said = root / "data", root / "said.txt"
        with said.open("wb") as output:
            make = [_found("initdb"), "-D", data, "-U", USER, "-A", "trust", "-N"]
            subprocess.run(make, stdout=output, stderr=output, user=user, cwd=root, check=True)
            serve = [_found("postgres"), "-D", data, "-k", root, *OPTIONS]
            server = subprocess.Popen(serve, stdout=output, stderr=output, user=user, cwd=root)
        try:
            _wait_until_ready(root, server, said)
            yield f"postgresql://{USER}@/postgres?host={root}"
        finally:
            # Its way to stop at once, and cleanly.
            server.send_signal(signal.SIGINT)
            server.wait(STOP_S_MAX)


def _wait_until_ready(root: Path, server: subprocess.Popen[bytes], said: Path) -> None:
    deadline = monotonic() + START_S_MAX
    while subprocess.run([_found("pg_isready"), "-q", "-h", root], check=False).returncode != 0:
        assert server.poll() is None, f"the server ended:\n{said.read_text()}"
        assert monotonic() < deadline, f"the server did not start:\n{said.read_text()}"
        sleep(LOOK_AGAIN_AFTER_S)
