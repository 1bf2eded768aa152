"""Forgets the demo's data: the embedded database, its queue, Prometheus and logs.

Run by `make demo-reset` with the machine's own Python; it touches only what the demo made.
"""

import fcntl
import shutil
import sys
from pathlib import Path

DATABASE = ("sekisho.sqlite3", "sekisho.sqlite3-wal", "sekisho.sqlite3-shm")


def main() -> None:
    """Deletes the demo's files in the folder given, unless the demo is running there."""
    data = Path(sys.argv[1])
    folder = data / "demo"
    if not folder.is_dir():
        sys.stdout.write(f"There is no demo in {data}: nothing to forget.\n")
        return
    with (folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"The demo runs in {data}. Stop it with Ctrl-C first.")
        for name in DATABASE:
            (data / name).unlink(missing_ok=True)
        shutil.rmtree(folder)
    sys.stdout.write("Forgotten. `make demo` starts over.\n")


if __name__ == "__main__":
    main()
