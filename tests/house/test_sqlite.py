"""The embedded database waits its turn: what SQLite does differently, on a real file."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

# One writer holds the lock for a moment; another begins meanwhile, and must wait, not fail.
TWO_WRITERS = """
import json, threading, time
import portal.wsgi
from django.core.management import call_command
from django.db import connection, transaction
from portal.tenants.models import Tenant

call_command("migrate", verbosity=0, skip_checks=True)
with connection.cursor() as cursor:
    pragmas = {
        name: cursor.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "busy_timeout", "synchronous", "foreign_keys")
    }

held, order = threading.Event(), []

def first():
    with transaction.atomic():
        held.set()
        time.sleep(0.5)
        Tenant.objects.create(name="first")
        order.append("first")
    connection.close()

def second():
    held.wait()
    with transaction.atomic():
        order.append("second")
        seen = Tenant.objects.filter(name="first").exists()
        Tenant.objects.create(name="second" if seen else "too-early")
    connection.close()

writers = [threading.Thread(target=first), threading.Thread(target=second)]
for writer in writers:
    writer.start()
held.wait()
readable = Tenant.objects.count()  # while the lock is held
for writer in writers:
    writer.join()
names = sorted(Tenant.objects.values_list("name", flat=True))
print(json.dumps({"pragmas": pragmas, "order": order, "readable": readable, "names": names}))
"""


def test_writers_queue_readers_never_wait_and_the_pragmas_are_set(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWO_WRITERS],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": "", "SEKISHO_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["pragmas"] == {
        "journal_mode": "wal", "busy_timeout": 20_000, "synchronous": 1, "foreign_keys": 1,
    }  # fmt: skip
    assert told["order"] == ["first", "second"]
    assert told["readable"] == 0
    assert told["names"] == ["first", "second"]
