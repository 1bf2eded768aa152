#!/usr/bin/env bash
# Installs from Debian what the tests start: servers, a browser, gettext, a Japanese font.
# Does nothing when all are there. Keeps the packages from starting as services of the machine.
set -euo pipefail

missing=()
need() { # PACKAGE, then programs or files: any one of them is enough
    local package=$1 thing
    shift
    for thing in "$@"; do
        if [[ -e $thing ]] || command -v "$thing" >/dev/null; then return; fi
    done
    missing+=("$package")
}
need redis-server redis-server
need postgresql /usr/lib/postgresql/*/bin/initdb initdb
need prometheus prometheus
need victoria-metrics victoria-metrics
need chromium chromium
need gettext msgfmt
need fonts-noto-cjk /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc
"${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)

((${#missing[@]})) || exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if ! command -v apt-get >/dev/null; then
    echo "Missing: ${missing[*]}. This is no Debian: install them with your own package manager." >&2
    exit 1
fi
if [[ $(id -u) != 0 ]]; then
    echo "Missing: ${missing[*]}. Install them once, then try again: sudo $install" >&2
    exit 1
fi

echo "Installing ${missing[*]}"
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then # 101: no service may be started
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
if ! { apt-get update && $install; } >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    echo "Could not install ${missing[*]}." >&2
    exit 1
fi
rm -f "$log"
