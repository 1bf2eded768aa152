"""What the demo has started ends with it, however it ends."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from portal.demo import install, launcher, processes, reset

ENV = dict(os.environ)
# A process with a child of its own, both deaf to polite requests.
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal, time;"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""
PARENT = """
import os, sys, time
from pathlib import Path
from portal.demo.processes import Children
children = Children(Path(sys.argv[1]))
child = children.start("sleeper", ["sleep", "60"], env=dict(os.environ))
print(child.pid, flush=True)
time.sleep(60)
"""


def gone(pid: int, *, within: float = 10.0) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").exists() and (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        ):
            return True
        time.sleep(0.05)
    return False


def demo(folder: Path, *, port: int = 0) -> launcher.Demo:
    return launcher.Demo(
        root=folder, data=folder, port=port, say=lambda _text: None,
        first_day=lambda: None, environ=dict(ENV),
    )  # fmt: skip


def test_stopping_ends_children_and_their_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "PATIENCE_SECONDS", 0.5)
    children = processes.Children(tmp_path)
    child = children.start("stubborn", [sys.executable, "-c", STUBBORN], env=ENV)
    while not (said := children.log("stubborn").read_text().strip()):
        time.sleep(0.05)
    children.stop()
    assert child.returncode is not None
    assert gone(int(said))
    with pytest.raises(processes.StoppingError):
        children.start("late", ["true"], env=ENV)


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells a child of its parent's death"
)
def test_a_child_outlives_the_thread_that_asked_for_it(tmp_path: Path) -> None:
    children = processes.Children(tmp_path)
    asking = threading.Thread(
        target=lambda: children.start("sleeper", ["sleep", "60"], env=ENV), daemon=True
    )
    asking.start()
    asking.join()
    time.sleep(0.3)

    assert children.crashed(among=["sleeper"]) is None
    children.stop()


def test_children_end_when_the_launcher_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert gone(child)


def test_a_child_that_ends_by_itself_is_noticed(tmp_path: Path) -> None:
    children = processes.Children(tmp_path)
    child = children.start("brief", [sys.executable, "-c", "print('so long')"], env=ENV)
    child.wait()
    assert children.crashed(among=["brief"]) == "brief"
    assert children.crashed(among=["another"]) is None
    assert "so long" in children.log("brief").read_text()
    children.stop()


def test_a_taken_port_is_said_before_anything_is_started(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        running = demo(tmp_path, port=port)
        with pytest.raises(launcher.DemoError, match=f"Port {port} .*make demo PORT={port + 1}"):
            running.run()
    assert list((tmp_path / "demo" / "logs").iterdir()) == []


def test_one_folder_runs_one_demo_and_is_not_reset_under_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = demo(tmp_path)
    lock = first._only_one()
    with pytest.raises(launcher.DemoError, match="already runs"):
        demo(tmp_path)._only_one()
    monkeypatch.setattr(sys, "argv", ["reset", str(tmp_path)])
    with pytest.raises(SystemExit, match="runs in"):
        reset.main()
    lock.close()
    (tmp_path / "sekisho.sqlite3").touch()
    (tmp_path / "own.txt").touch()
    reset.main()
    assert [path.name for path in tmp_path.iterdir()] == ["own.txt"]


def test_the_secret_key_is_drawn_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    key = launcher.environment(data=tmp_path)["SEKISHO_SECRET_KEY"]
    assert len(key) >= 50
    assert launcher.environment(data=tmp_path)["SEKISHO_SECRET_KEY"] == key
    assert (tmp_path / "demo" / "secret-key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("NewConnectionError: Temporary failure in name resolution", "no network"),
        ("error: command 'gcc' failed: No such file or directory", "no C compiler"),
        ("error: command '/usr/bin/x86_64-linux-gnu-gcc' failed with exit code 1", "no C compiler"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("ERROR: No matching distribution found for numpy", "does not exist for this machine"),
        ("something nobody has seen before", "could not be installed"),
    ],
)  # fmt: skip
def test_what_pip_says_is_put_plainly(said: str, sentence: str) -> None:
    meaning = install.meaning(said)
    assert sentence in meaning
    assert said[-20:] in meaning
