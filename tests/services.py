"""Starts what the tests need and nothing else may see: a private PostgreSQL and a private Redis.

    python -m tests.services -- COMMAND ...

Both listen on free ports of 127.0.0.1 and keep their files in a folder that goes when they end. The
command finds them in DATABASE_URL and REDIS_URL; its exit status becomes ours, also after Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

START_SECONDS = 30
STOP_SECONDS = 10


class ServiceError(RuntimeError):
    """A service did not come up; says which, and shows its last words."""


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether something answers on the port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def service(
    name: str,
    command: Sequence[str | Path],
    *,
    log: Path,
    ready: Callable[[], bool],
    env: dict[str, str] | None = None,
    user: str | None = None,
    stop: signal.Signals = signal.SIGTERM,
    start_seconds: float = START_SECONDS,
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a server until the block ends. A session of its own keeps Ctrl-C from it."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
            user=user,
            group=pwd.getpwnam(user).pw_gid if user else None,
            extra_groups=[] if user else None,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + start_seconds
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServiceError(f"{name} did not start:\n{log.read_text()[-3000:]}")
            time.sleep(0.05)
        yield process
    finally:
        process.send_signal(stop)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _postgres_program(name: str) -> Path:
    """Debian keeps these off the PATH, in a folder for each version: the newest."""
    found = sorted(
        Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4])
    )
    on_path = shutil.which(name)
    if not found and not on_path:
        raise ServiceError(f"{name} is missing: apt-get install postgresql")
    return found[-1] if found else Path(str(on_path))


def make_cluster(folder: Path) -> None:
    """A new PostgreSQL cluster in the folder, for `postgres_server`."""
    user = _postgres_user()
    home = folder / "postgres"
    home.mkdir()
    if user:
        folder.chmod(0o755)
        shutil.chown(home, user, pwd.getpwnam(user).pw_gid)
    made = subprocess.run(
        [
            _postgres_program("initdb"), "--pgdata", home / "data", "--username", "sekisho",
            "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync",
        ],
        capture_output=True, text=True, check=False, cwd="/",
        user=user, group=pwd.getpwnam(user).pw_gid if user else None,
    )  # fmt: skip
    if made.returncode:
        raise ServiceError(f"initdb failed:\n{made.stdout}{made.stderr}")


def postgres_server(
    folder: Path, port: int
) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    """The server of the folder's cluster. Durability is off: the files are ours."""
    home = folder / "postgres"
    is_ready: list[str | Path] = [
        _postgres_program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port),
    ]  # fmt: skip
    return service(
        "PostgreSQL",
        [
            _postgres_program("postgres"), "-D", home / "data", "-k", home, "-p", str(port),
            "-h", "127.0.0.1", "-c", "fsync=off", "-c", "synchronous_commit=off",
            "-c", "full_page_writes=off", "-c", "max_connections=60",
        ],
        log=folder / "postgres.log",
        ready=lambda: subprocess.run(is_ready, check=False).returncode == 0,
        user=_postgres_user(),
        stop=signal.SIGINT,  # "fast shutdown": does not wait for open connections
    )  # fmt: skip


def _postgres_user() -> str | None:
    return "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A new PostgreSQL cluster; yields its DATABASE_URL."""
    make_cluster(folder)
    port = free_port()
    with postgres_server(folder, port):
        make_database(port, "sekisho")
        yield f"postgres://sekisho@127.0.0.1:{port}/sekisho"


def make_database(port: int, name: str) -> None:
    """An empty database in the cluster at the port; an old one of the name goes first."""
    common = ["-h", "127.0.0.1", "-p", str(port), "-U", "sekisho"]
    subprocess.run(
        [_postgres_program("dropdb"), *common, "--force", "--if-exists", name],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    subprocess.run([_postgres_program("createdb"), *common, name], check=True)


def redis_server(
    folder: Path, port: int
) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    """A Redis that keeps nothing."""
    program = shutil.which("redis-server")
    if not program:
        raise ServiceError("redis-server is missing: apt-get install redis-server")
    command = [
        program, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no",
        "--dir", str(folder),
    ]  # fmt: skip
    return service("Redis", command, log=folder / "redis.log", ready=lambda: listens(port))


@contextlib.contextmanager
def redis(folder: Path) -> Iterator[str]:
    """A Redis that keeps nothing; yields its REDIS_URL."""
    port = free_port()
    with redis_server(folder, port):
        yield f"redis://127.0.0.1:{port}/0"


def run(command: Sequence[str]) -> int:
    """The command's exit status, run beside both services, which end with it."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sekisho-tests-")))
        database_url = stack.enter_context(postgres(folder))
        redis_url = stack.enter_context(redis(folder))
        env = os.environ | {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        child = subprocess.Popen(command, env=env)
        # Ctrl-C reaches the command as well: let it end by itself, then stop the services.
        signal.signal(signal.SIGINT, lambda *_args: None)
        signal.signal(signal.SIGTERM, lambda *_args: child.send_signal(signal.SIGINT))
        return child.wait()


def main(arguments: Sequence[str]) -> int:
    """Reads the command line."""
    if len(arguments) < 2 or arguments[0] != "--":
        sys.stderr.write("usage: python -m tests.services -- COMMAND ...\n")
        return 2
    try:
        return run(arguments[1:])
    except ServiceError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
