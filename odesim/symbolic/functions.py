"""The functions that an expression may have."""

FUNCTIONS = {
    "exp": "exp", "log": "log", "log1p": "log1p", "expm1": "expm1", "tanh": "tanh", "erf": "erf",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "atan2": "atan2",
    "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "Abs": "abs", "floor": "floor", "ceiling": "ceiling",
}  # fmt: skip
"""sympy function -> our word for it; each language says which it has."""
OTHERS = frozenset((
    "Add", "Mul", "Pow", "Piecewise", "Max", "Min", "sign", "Heaviside", "KroneckerDelta", "Mod", "frac", "re", "im",
    "Weighted", "Counted", "XLogY", "Share",
))  # fmt: skip
"""What has a form of its own in each language, or is written in terms of others."""
CHOICES = ("sqrt", "Max", "Min", "sign", "Heaviside", "Mod", "xlogy", *FUNCTIONS)
"""What a model file may write, beside +, *, ** and Piecewise."""


def is_known(name: str) -> bool:
    """Whether code can be generated for the sympy class of that name."""
    return name in FUNCTIONS or name in OTHERS
