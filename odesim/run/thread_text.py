"""The CUDA text of an ensemble: one thread integrates one member from start to end.

The functions are those of a lane kernel of width one (odesim.run.lane_kernel), translated; only what leads them is written here. A row
of S is one number of the thread: all places in S are constants, so that the compiler keeps them in registers.
"""

import ast
from collections.abc import Collection
from dataclasses import replace

from odesim.run.lane_feed import feed_texts
from odesim.run.lane_kernel import head_text, right_text, step_loops
from odesim.run.lane_plan import AT, KernelPlan, Rows
from odesim.stepper.search_samples import memory_size
from odesim.targets.cuda_text import ModuleScope, Translation, cuda_source, module_scope
from odesim.targets.cuda_words import INT, REAL

THREADS = 64  # of a block: a thread's registers allow no more than a few hundred on a multiprocessor
MOST_NEAR = 4  # states all of whose rows are registers, where no events are watched
KERNEL = """
template <class A, class B> __device__ __forceinline__ void odesim_copy(A* to, const B* from) {{
    {copies}
}}
__device__ __forceinline__ long long odesim_asked(long long place) {{ return *(volatile long long*)place; }}

{functions}

extern "C" __global__ void __launch_bounds__({threads}, 1) ensemble(long long table) {{
    long long* at = (long long*)table;
    const long long {turn} = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if ({turn} >= at[{END}]) return;{chosen}
    double S[{rows}], zeros[{zeros}];
    volatile double T[{searched}];  // not for registers
    {zeroed}
    {member}(at, S, T, zeros, i);
}}
""".strip("\n")


def thread_source(plan: KernelPlan) -> str:
    """The source with the kernel `ensemble(table)`, which integrates members 0 to END - 1. plan: of width one."""
    rows = Rows(plan)
    far, scope = distant_rows(plan, rows), thread_scope(plan)
    translation = Translation(by_hand={"copy_all": (None, "odesim_copy"), "asked": (INT, "odesim_asked")}, apart=frozenset({"search"}))
    member = translation.function(scope, "member", (f"{INT}*", f"{REAL}*", f"volatile {REAL}*", f"{REAL}*", INT))
    watch = plan.watch
    words = {"threads": THREADS, "END": AT["END"], "rows": rows.count, "member": member.name, "turn": "i", "chosen": ""}
    if plan.parts:
        words |= {"turn": "turn", "chosen": f"\n    const long long i = ((const long long*)at[{AT['ORDER']}])[turn];"}
    words |= {"searched": rows.count if watch or far else 1, "zeros": memory_size(watch.room) if watch else 1}
    each = [k for k in range(rows.count) if k not in far] if watch else []  # line by line: a loop over S would keep it in memory
    words |= {"copies": " ".join(f"to[{k}] = from[{k}];" for k in each), "zeroed": " ".join(f"S[{k}] = 0.0;" for k in range(rows.count))}
    about = (
        f"{plan.name}, {plan.method.name}, {plan.formulas.dtype}{', fixed step' if plan.fixed else ''}{', strict' if plan.strict else ''}"
    )
    return cuda_source(f"{about}: one member a thread, generated", KERNEL.format(functions=translation.text(), **words))


def thread_scope(plan: KernelPlan) -> ModuleScope:
    """The Python functions of one member, before translation."""
    rows = Rows(plan)
    body = "\n\n\n".join([right_text(plan), *step_loops(plan, rows), *feed_texts(plan, rows, thread=True)])
    scope, far = module_scope(f"{head_text(plan, body)}\n\n\n{body}\n"), distant_rows(plan, rows)
    return replace(scope, functions={name: InThread(far).visit(function) for name, function in scope.functions.items()})


def distant_rows(plan: KernelPlan, rows: Rows) -> set[int]:
    """The rows that lie in T and not in S.

    With states between steps there are more rows than a thread has registers for. Then only the state and its derivative stay in S.
    """
    few = plan.watch is None and plan.formulas.states <= MOST_NEAR
    if plan.loops or few or not plan.dense:  # loops: all rows lie in memory anyway
        return set()
    return set(range(rows.count)) - {*rows.y, *rows.f, *rows.slopes}


class InThread(ast.NodeTransformer):
    """A lane's function for a thread, whose lane is 0, with distant rows in T. What a search calls is given a T that holds all of S."""

    def __init__(self, far: Collection[int], apart: bool = True) -> None:
        self.far, self.apart = far, apart

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        apart = node.name not in ("probe", "sample")
        if apart and node.args.args and node.args.args[0].arg == "S":
            node.args.args.insert(1, ast.arg("T"))
        inside = InThread(self.far if apart else (), apart)
        node.body = [inside.visit(s) for s in node.body]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "S":
            match node.slice:
                case ast.Name(id="l"):
                    node.slice = ast.Constant(0)
                case ast.BinOp(left=place, op=ast.Add(), right=ast.Name(id="l")):
                    node.slice = place
            if isinstance(node.slice, ast.Constant) and node.slice.value in self.far:
                node.value = ast.Name("T")
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.Name(id="S"), *_]) if self.apart and name != "copy_all":
                node.args.insert(1, ast.Name("T"))
        return node
