"""What a thread of each GPU kernel takes: registers, bytes on its stack, bytes spilled. NVRTC says it; no GPU is needed.

python benchmarks/registers.py [--methods tsit5,vern7,dop853,rodas4,rodas5p] [--archs sm_80,sm_90,sm_100] [--json FILE]

The ensembles are those of works.py, the large systems those of wide.py and gpu_products.py, outside strict mode, the end alone kept; a
multiprocessor has 65536 registers for its threads, and a thread at most 255. A number of the stack that is not spilled is an array with
a computed place.
"""

import re
from typing import Any
from unittest.mock import patch

from measuring import Report, arguments  # first: one thread

# isort: split
from direct import request_of
from gpu_products import product_system
from ours import ensemble_arguments
from wide import wide_system
from works import make_work

from odesim.run.threads import device_engine, source_of
from odesim.stepper.device import driver_text
from odesim.symbolic.system import System
from odesim.targets.compiled import CompiledRHS
from odesim.targets.cuda_system import wide_text
from odesim.targets.nvrtc import compile_cubin, compiler_version, options_for

MODELS = {"joma.nonlinear, 4 states": "W1", "Lorenz, 3 states": "W2"}
NUMBERS = {"registers": r"Used (\d+) registers", "stack": r"(\d+) bytes stack frame", "spills": r"(\d+) bytes spill stores"}


def register_counts(log: str) -> dict[str, int]:
    """The largest of each that the compiler's report names; nothing where it says nothing."""
    found = {name: [int(n) for n in re.findall(pattern, log)] for name, pattern in NUMBERS.items()}
    return {name: max(values) for name, values in found.items() if values}


def thread_text(work: str, method: str) -> str:
    """The CUDA source of the kernel of a work's ensemble."""
    given = ensemble_arguments(make_work(work, 4))
    with patch("odesim.api.ensemble_request.cupy_here"):  # of a request that is only compiled
        members, request = request_of(given.pop("model"), **given, method=method, backend="cuda")
    return source_of(device_engine(request, members.shared, members.source.names).plan)


def wide_source(system: System) -> str:
    """The CUDA source of the kernels of one large system."""
    made = CompiledRHS(system, "cuda", "float64", False)
    return wide_text(made.system, made.program, made.events_program, made.laws_program, driver_text(), dtype="float64", strict=False).source


def main() -> None:
    """Compiles, prints, and writes JSON where asked."""
    options = arguments(__doc__, methods="tsit5,vern7,dop853,rodas4,rodas5p", archs="sm_80,sm_90,sm_100").parse_args()
    archs = options.archs.split(",")
    texts = {(model, m): thread_text(work, m) for model, work in MODELS.items() for m in options.methods.split(",")}
    texts["one large system (W3)", "explicit"] = wide_source(wide_system())
    texts["one with a product of matrices", "explicit"] = wide_source(product_system())
    rows: list[dict[str, Any]] = []
    for (model, method), text in texts.items():
        row: dict[str, Any] = {"model": model, "method": method}
        for arch in archs:
            found = register_counts(compile_cubin(text, "registers", options_for(arch, strict=False)).log)
            row[arch] = ", ".join(str(found.get(name, "?")) for name in NUMBERS)
        rows.append(row)
    report = Report("registers")
    columns = [("kernel", "model", ""), ("method", "method", ""), *((arch, arch, "") for arch in archs)]
    title = f"Registers, bytes on the stack, bytes spilled, of a thread; NVRTC {'.'.join(map(str, compiler_version()))}"
    report.add({"title": title, "columns": columns, "rows": rows})
    report.write(options.json, ("odesim",))


if __name__ == "__main__":
    main()
