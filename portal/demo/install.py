"""Makes .venv and installs the pinned packages; says plainly what is missing when it cannot.

Run by `make setup` with the machine's own Python: it imports nothing but the standard library.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent.parent
# What pip says when something is missing, and what that means.
NO_NETWORK = (
    "The packages cannot be fetched: there is no network, or no way to the package index. "
    "Check the connection (and pip's index or proxy settings), then run it again."
)
NO_COMPILER = (
    "A package has to be built here and there is no C compiler. "
    "On Debian or Ubuntu: apt install build-essential python3-dev"
)
NO_SPACE = "The disk is full: the packages need about 1 GB."
NO_WHEEL = (
    "A pinned package does not exist for this machine or this Python. "
    "Use CPython 3.11 to 3.14 on Linux or macOS."
)
MEANINGS = {
    "name resolution|Name or service not known|Network is unreachable|Connection refused"
    "|ConnectTimeout|timed out|NewConnectionError|ProxyError": NO_NETWORK,
    r"command '\S*(gcc|cc|clang)\S*' failed|No such file or directory: '(gcc|cc)'"
    "|Unable to find a compatible compiler|Unknown compiler": NO_COMPILER,
    "No space left on device": NO_SPACE,
    "No matching distribution|Could not find a version": NO_WHEEL,
}
# uv does not read pip's settings, so it is told them.
UV_SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}


def main() -> None:
    """Installs into the folder named first, with the groups named after it; status 1 on failure."""
    venv = Path(sys.argv[1]).resolve()
    python = venv / "bin" / "python"
    if not _works(python):
        _say(f"Making {venv.name}")
        _make(venv, python)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [name for group in sys.argv[2:] for name in project["dependency-groups"][group]]
    wanted = project["project"]["dependencies"] + groups
    wanted = ["--constraint", str(ROOT / "constraints.txt"), *wanted]
    _say("Installing the pinned packages (the first time takes up to a minute)")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # uv is several times faster. It is a comfort: without it pip does the same.
    if _run([*pip, "install", "uv"]).returncode == 0:
        command = [str(python), "-m", "uv", "pip", "install", "--quiet", "--python", str(python)]
        if _run([*command, *wanted], env=_uv_settings(pip)).returncode == 0:
            return
    done = _run([*pip, "install", *wanted])
    if done.returncode:
        _stop(meaning(done.stdout))


def meaning(said: str) -> str:
    """A sentence for what pip said, and the end of what it said."""
    for pattern, sentence in MEANINGS.items():
        if re.search(pattern, said):
            return f"{sentence}\n{_tail(said)}"
    return f"The packages could not be installed:\n{_tail(said)}"


def _works(python: Path) -> bool:
    """Whether the environment is there, belongs to a Python new enough, and has pip."""
    check = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    return python.exists() and _run([str(python), "-c", check]).returncode == 0


def _make(venv: Path, python: Path) -> None:
    done = _run([sys.executable, "-m", "venv", "--clear", str(venv)])
    if done.returncode or not _works(python):
        if re.search("ensurepip|No module named .?venv", done.stdout):
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            _stop(
                "Python's venv module is incomplete. "
                f"On Debian or Ubuntu: apt install python3-venv (or python{version}-venv)"
            )
        _stop(f"The environment {venv} cannot be made:\n{_tail(done.stdout)}")


def _uv_settings(pip: Sequence[str]) -> dict[str, str]:
    env = dict(os.environ)
    for setting, name in UV_SETTINGS.items():
        shown = _run([*pip, "config", "get", f"global.{setting}"])
        own = os.environ.get(f"PIP_{setting.replace('-', '_').upper()}")
        value = own or (shown.stdout.strip() if shown.returncode == 0 else "")
        if value:
            env.setdefault(name, value)
    # As pip does: any index may hold a pinned version, not only the first that knows the name.
    env.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    env.setdefault("UV_SYSTEM_CERTS", "1")
    return env


def _run(
    command: Sequence[str], *, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command; what it says is kept for when it fails."""
    return subprocess.run(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


def _tail(said: str) -> str:
    lines = [line for line in said.strip().splitlines() if "WARNING: Retrying" not in line]
    return "\n".join(f"  {line}" for line in lines[-8:])


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def _stop(sentence: str) -> NoReturn:
    sys.stderr.write(f"{sentence}\n")
    sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        _stop("Interrupted; run it again to go on.")
