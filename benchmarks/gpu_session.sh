#!/usr/bin/env bash
# On a machine with a GPU, in at most 9 minutes, with what is installed there (numpy, sympy, scipy, numba, cupy; pytest, diffrax and
# torchdiffeq if they are):
#   bash benchmarks/gpu_session.sh FOLDER [PYTHON]      then      python benchmarks/report.py FOLDER
# FOLDER gets facts.log, NAME.json and NAME.log of each part, the most important part first, and summary.txt with all tables. A part that
# fails or takes too long is named, and the others still run. QUICK=1: few members, to see that everything runs.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: gpu_session.sh FOLDER [PYTHON]}
python=${2:-python3}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
cd "$here/.." || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 ODESIM_CACHE_DIR="${ODESIM_CACHE_DIR:-$scratch/cache}"
export CUPY_CACHE_DIR="$scratch/cupy" PYTHONDONTWRITEBYTECODE=1
last=${SECONDS_IN_ALL:-525}
failed=""

part() { # part NAME SECONDS COMMAND...: its output to NAME.log, for so long, or as long as is left
    local name=$1 most=$2 left=$((last - SECONDS)) begun=$SECONDS code=0
    shift 2
    [ "$left" -gt "$most" ] && left=$most
    if [ "$left" -lt 5 ]; then
        echo "$name: no time left"
        failed="$failed $name"
        return
    fi
    timeout -k 5 "$left" "$@" >"$out/$name.log" 2>&1 || code=$?
    [ "$code" = 0 ] || failed="$failed $name"
    echo "$name: $((SECONDS - begun)) s, exit status $code"
}

measure() { # measure PART SECONDS OPTIONS...
    local name=$1 most=$2
    shift 2
    part "$name" "$most" "$python" "$here/gpu.py" --parts "$name" --json "$out/$name.json" "$@"
}

part facts 60 bash -c "nvidia-smi; '$python' '$here/card.py'"
if [ "${QUICK:-}" ]; then small="--rounds 1 --members 96 --cpu 48 --largest 1e4"; else small=""; fi
# shellcheck disable=SC2086
for given in "strict 100" "W2 100" "W1 110" "W3 110" "W4j 70" "products 45" "peers 90"; do measure $given $small; done
if [ -z "${QUICK:-}" ] && "$python" -c "import pytest" 2>/dev/null; then # with what is left of the time
    workers=$("$python" -c "import xdist; print('-n 8')" 2>/dev/null)
    # the settings of the project are for its own environment: its plugins, and warnings as errors
    # shellcheck disable=SC2086
    part tests 300 "$python" -m pytest -o addopts= -o filterwarnings=default --import-mode=importlib -p no:cacheprovider \
        $workers -q -m gpu --maxfail 20 tests/cuda
    tail -n 15 "$out/tests.log" 2>/dev/null
fi
{
    cat "$out/facts.log"
    for name in strict W2 W1 W3 W4j products peers; do cat "$out/$name.log" 2>/dev/null; done
    tail -n 30 "$out/tests.log" 2>/dev/null
} >"$out/summary.txt"
echo "all: $SECONDS s"
if [ "$failed" ]; then
    echo "failed, see the logs in $out:$failed" >&2
    exit 1
fi
