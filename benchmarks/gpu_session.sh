#!/usr/bin/env bash
# On a machine with a GPU, with what is installed there (numpy, sympy, scipy, numba, cupy; pytest, torch, diffrax and torchdiffeq if they
# are):
#   bash benchmarks/gpu_session.sh FOLDER [PYTHON]      then      python benchmarks/report.py FOLDER
# First all parts with few members, side by side, to see that everything runs and to compile it; then one after another, alone, to measure,
# then pytest -m gpu. FOLDER gets facts.log, NAME.json and NAME.log of each part, few_NAME.log of the first
# round, tests.log, and summary.txt with all tables. A part that fails or takes too long is named, and the others still run.
# QUICK=1: the first round and the tests alone. PARTS: some of the parts. ROUNDS: 5. TESTS: arguments of pytest. SECONDS_IN_ALL: 525.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: gpu_session.sh FOLDER [PYTHON]}
python=${2:-python3}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
cd "$here/.." || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 ODESIM_CACHE_DIR="${ODESIM_CACHE_DIR:-$scratch/cache}"
export CUPY_CACHE_DIR="$scratch/cupy"
last=${SECONDS_IN_ALL:-525}
parts=${PARTS:-strict W2 W1 W3 products transformer peers W4j}

part() { # part NAME SECONDS COMMAND...: its output to NAME.log, for so long, or as long as is left
    local name=$1 most=$2 left=$((last - SECONDS)) begun=$SECONDS code=0
    shift 2
    [ "$left" -gt "$most" ] && left=$most
    if [ "$left" -lt 5 ]; then
        echo "$name: no time left" | tee -a "$scratch/failed"
        return
    fi
    timeout -s INT -k 10 "$left" "$@" >"$out/$name.log" 2>&1 || code=$?
    [ "$code" = 0 ] || echo "$name" >>"$scratch/failed"
    echo "$name: $((SECONDS - begun)) s, exit status $code"
}

tests() { # tests SECONDS WORKERS: what the shim holds on a processor, on the device
    "$python" -c "import pytest" 2>/dev/null || return
    local workers
    workers=$("$python" -c "import xdist; print('-n $2')" 2>/dev/null)
    # the settings of the project are for its own environment: its plugins, and warnings as errors
    # shellcheck disable=SC2086
    part tests "$1" "$python" -m pytest -o addopts= -o filterwarnings=default --import-mode=importlib -p no:cacheprovider \
        $workers -q --tb=short -rfE --durations=10 -m gpu ${TESTS:-tests/cuda}
    tail -n 15 "$out/tests.log" 2>/dev/null
}

part facts 60 bash -c "nvidia-smi; '$python' '$here/card.py'"
for name in $parts; do
    part "few_$name" 150 "$python" "$here/gpu.py" --parts "$name" --rounds 1 --members 96 --cpu 48 --largest 1e4 &
done
if [ "${QUICK:-}" ]; then tests 300 $(($(nproc) / 2)); fi
wait
if [ -z "${QUICK:-}" ]; then
    for name in $parts; do part "$name" 120 "$python" "$here/gpu.py" --parts "$name" --rounds "${ROUNDS:-5}" --json "$out/$name.json"; done
    tests 300 "$(nproc)"
fi
{
    cat "$out/facts.log"
    for name in $parts; do cat "$out/$name.log" 2>/dev/null; done
    tail -n 30 "$out/tests.log" 2>/dev/null
} >"$out/summary.txt"
echo "all: $SECONDS s"
if [ -s "$scratch/failed" ]; then
    echo "failed, see the logs in $out: $(tr '\n' ' ' <"$scratch/failed")" >&2
    exit 1
fi
