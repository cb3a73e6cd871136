#!/usr/bin/env bash
# Measures everything, one benchmark after another, some 25 minutes on two free cores:
#   bash benchmarks/session.sh FOLDER [PYTHON]      then      python benchmarks/report.py FOLDER
# FOLDER gets NAME.json and NAME.log of each; PYTHON is that of an environment with odesim and its extra `bench`. QUICK=1: few rounds and
# members, to see that everything runs. One that fails is named at the end, and the others still run.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: session.sh FOLDER [PYTHON]}
python=${2:-python}
mkdir -p "$out" || exit 1
failed=""

measure() { # measure NAME OPTIONS...
    local start=$SECONDS name=$1
    shift
    if ! PYTHONPATH="$here/.." "$python" "$here/$name.py" "$@" --json "$out/$name.json" >"$out/$name.log" 2>&1; then
        failed="$failed $name"
    fi
    echo "$name: $((SECONDS - start)) s, load $(cut -d ' ' -f 1 /proc/loadavg 2>/dev/null)"
}

if [ "${QUICK:-}" ]; then
    measure ensemble --rounds 1 --members 2000
    measure fixed --rounds 1 --seconds 0.05
    measure stiff --rounds 1 --seconds 0.05 --works W4r --peers "numbalsoda LSODA"
    measure problems --rounds 1 Robertson Lorenz
    measure modes --rounds 1 --members 4000
    measure wide --rounds 1 --sizes 10000
    measure contractions --rounds 1 matrix
    measure latency --rounds 1 --cold 1
    measure train --rounds 1 --seeds 1
else
    measure ensemble --rounds 7
    measure fixed --rounds 7
    measure stiff --rounds 7
    measure problems --rounds 7
    measure modes --rounds 9
    measure wide --rounds 7
    measure contractions --rounds 7
    measure latency --rounds 7 --cold 3
    measure kernels --rounds 2
    measure train --rounds 5
    measure work_precision --rounds 3 --out "$out"
    measure problem_pictures --out "$out"
    if "$python" -c "import dysts" 2>/dev/null; then measure dysts_flows; fi
    if "$python" -c "import torch" 2>/dev/null; then measure train_transformer --rounds 9; fi
fi
if [ "$failed" ]; then
    echo "failed, see the logs in $out:$failed" >&2
    exit 1
fi
