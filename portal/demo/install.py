"""Makes .venv and installs the pinned packages; says plainly what is missing when it cannot.

Run by `make setup` with the machine's own Python, so it imports nothing but the standard library,
and its syntax is that of old Pythons too: they are to be told that they are too old.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NEEDED = (3, 11)
# What pip and uv say, and what that means.
MEANINGS = (
    (
        r"name resolution|Name or service not known|dns error|Network is unreachable"
        r"|Connection refused|ConnectTimeout|timed out|Could not connect|error sending request"
        r"|NewConnectionError|ProxyError|tunnel error",
        "The packages cannot be fetched: there is no network, or no way to the package index. "
        "Check the connection (and pip's index or proxy settings), then run it again.",
    ),
    (
        r"(gcc|cc|c\+\+|clang)'? ?(failed|not found)|command '.*(gcc|cc|clang)|No such file.*'(gcc|cc)'"
        r"|Unable to find a compatible compiler|Microsoft Visual C\+\+",
        "A package has to be built here and there is no C compiler. "
        "On Debian or Ubuntu: apt install build-essential python3-dev.",
    ),
    (r"No space left on device", "The disk is full: the packages need about 700 MB."),
    (
        r"No matching distribution|no version of|No solution found|unsatisfiable",
        "A pinned package does not exist for this machine or this Python. "
        "Use CPython 3.11 to 3.14 on Linux or macOS.",
    ),
)


def main():
    """Installs into the folder given as the first argument; status 1 and a sentence on failure."""
    venv = os.path.abspath(sys.argv[1])
    if sys.version_info < NEEDED:
        stop(
            "Sekisho needs Python %d.%d or newer, this is %d.%d (%s). "
            "Name a newer one: make demo PYTHON=python3.12"
            % (NEEDED + sys.version_info[:2] + (sys.executable,))
        )
    python = os.path.join(venv, "bin", "python")
    if not works(python):
        print("Making " + os.path.relpath(venv), flush=True)
        make_venv(venv, python)
    wanted = dependencies()
    pins = os.path.join(ROOT, "constraints.txt")
    print("Installing the pinned packages (about a minute the first time)", flush=True)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # uv is several times faster. It is a comfort: without it pip does the same.
    if run(pip + ["install", "uv"]).returncode == 0:
        command = [python, "-m", "uv", "pip", "install", "--quiet", "--python", python]
        if run(command + ["-c", pins] + wanted, env=uv_settings(pip)).returncode == 0:
            return
    done = run(pip + ["install", "-c", pins] + wanted)
    if done.returncode:
        stop(meaning(done.stdout))


def works(python):
    """Whether the environment is there, belongs to a Python new enough, and has pip."""
    if not os.path.exists(python):
        return False
    check = "import sys, pip; sys.exit(sys.version_info < %r)" % (NEEDED,)
    return run([python, "-c", check]).returncode == 0


def make_venv(venv, python):
    """Makes the environment anew."""
    version = "%d.%d" % sys.version_info[:2]
    done = run([sys.executable, "-m", "venv", "--clear", venv])
    if done.returncode or not works(python):
        if re.search("ensurepip|No module named '?venv", done.stdout):
            stop(
                "Python's venv module is incomplete. On Debian or Ubuntu: "
                "apt install python3-venv (or python%s-venv)." % version
            )
        stop("The environment %s cannot be made:\n%s" % (venv, tail(done.stdout)))


def dependencies():
    """What pyproject.toml asks for."""
    import tomllib

    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        return tomllib.load(file)["project"]["dependencies"]


def uv_settings(pip):
    """The environment for uv, which does not read pip's own configuration."""
    env = dict(os.environ)
    for name, setting in (
        ("UV_DEFAULT_INDEX", "global.index-url"),
        ("UV_INDEX", "global.extra-index-url"),
        ("UV_FIND_LINKS", "global.find-links"),
        ("SSL_CERT_FILE", "global.cert"),
    ):
        shown = run(pip + ["config", "get", setting])
        own = os.environ.get("PIP_" + setting.split(".")[1].replace("-", "_").upper())
        value = own or (shown.stdout.strip() if shown.returncode == 0 else "")
        if value:
            env.setdefault(name, value)
    return env


def run(command, env=None):
    """Runs a command; what it says is kept for when it fails."""
    return subprocess.run(
        command,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        check=False,
    )


def meaning(said):
    """A sentence for what pip said, and the end of what it said."""
    for pattern, sentence in MEANINGS:
        if re.search(pattern, said):
            return sentence + "\n" + tail(said)
    return "The packages could not be installed:\n" + tail(said)


def tail(said):
    """The last lines, indented."""
    return "\n".join("  " + line for line in said.strip().splitlines()[-8:])


def stop(sentence):
    """Says why nothing goes on, and ends with status 1."""
    sys.stderr.write(sentence + "\n")
    sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        stop("Interrupted; run it again to go on.")
