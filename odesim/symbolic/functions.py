"""The functions that an expression may contain."""

FUNCTIONS = {
    "exp": "exp", "log": "log", "log1p": "log1p", "expm1": "expm1", "tanh": "tanh", "erf": "erf",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "atan2": "atan2",
    "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "erfc": "erfc", "sinc": "sinc",
    "erfinv": "erfinv", "loggamma": "loggamma", "digamma": "digamma", "polygamma": "polygamma", "LambertW": "lambertw",
    "besseli": "besseli", "besseli_ratio": "besseli_ratio", "jn": "spherical_jn", "binomial": "binomial",
    "Abs": "abs", "floor": "floor", "ceiling": "ceiling",
}  # fmt: skip
"""{sympy class: name of the function in generated code}; each target language has a table of those that it renames."""
OTHERS = frozenset((
    "Add", "Mul", "Pow", "Piecewise", "Max", "Min", "sign", "Heaviside", "KroneckerDelta", "Mod", "frac", "re", "im",
    "Weighted", "Counted", "XLogY", "Share", "Wrapped", "Padded", "Clipped", "Inside", "UpTo",
))  # fmt: skip
"""sympy classes that a printer writes in a form of their own, or by other functions."""
CHOICES = ("sqrt", "Max", "Min", "sign", "Heaviside", "Mod", "xlogy", *FUNCTIONS)
"""Functions that a model file may write, beside +, *, ** and Piecewise."""


def is_known(name: str) -> bool:
    """Whether code can be generated for the sympy class with this name."""
    return name in FUNCTIONS or name in OTHERS
