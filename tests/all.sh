#!/bin/sh
# All tests, in two runs: what needs no browser on two workers, then the journeys alone, since they
# share one running stack and follow one another. Arguments after the first go to both runs; one of
# them may then find nothing to do (status 5), both may not.
python=$1
shift
"$python" -m pytest -n 2 --dist loadgroup -m "not journey" "$@"
units=$?
"$python" -m pytest -m journey "$@"
journeys=$?
[ "$units" -eq 5 ] && exit "$journeys"
[ "$units" -ne 0 ] && exit "$units"
[ "$journeys" -eq 5 ] && [ $# -gt 0 ] && exit 0
exit "$journeys"
