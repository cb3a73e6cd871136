"""Names reserved by generated code and results, which a model cannot use."""

import re

from odesim.symbolic.functions import FUNCTIONS

WORDS = frozenset((
    "COMBINE", "EVENTS", "STAGE", "abs", "acos", "add_scaled", "asin", "asinh", "atan", "atan2", "blas_product", "block", "block_dot",
    "block_max", "block_sum", "combine", "combine_block", "constant_weight", "cos", "cosh", "element", "erf", "events", "exp",
    "expm1", "find_events", "float", "float32", "float64", "floor", "form", "ints", "kernel", "load", "log", "log1p", "max",
    "maximum", "min", "minimum", "nb", "options", "part_of", "pow", "powi", "product", "range", "reload", "rhs", "row_block",
    "scale_weights", "sin", "sinh", "split_terms", "sqrt", "stage", "store", "tan", "tanh", "tree_max", "tree_sum", "vector",
    "ahead_", "amounts_", "at_", "base_", "blocks_", "coef_", "early_", "gemm_", "here_", "hi_", "keep_", "late_", "lo_", "more_", "ns_",
    "coef0_", "height_", "i_e_", "n_e_", "row_", "rows0_", "total_", "width_",
    "add_down", "add_up", "clip", "invert", "on_axis", "wrap",
    "numbers_", "out_", "part_", "rows_", "scale_", "scales_", "start_", "state_", "table_", "terms_", "value_", "weights_", "work_",
    *FUNCTIONS.values(), "lambertw_lower",
))  # fmt: skip
RESULTS = frozenset(("attempt", "initial", "member", "occurrence", "params", "points", "rejected", "status", "steps", "t_end", "time"))
"""Names of arrays and dimensions in results, beside states and observables."""
SHAPES = re.compile(r"([A-Za-z]|acc)\d*_|event\d+")  # y_, k0_, acc0_, event1


def is_reserved(name: str) -> bool:
    """Whether generated code uses this name."""
    return name in WORDS or SHAPES.fullmatch(name) is not None
