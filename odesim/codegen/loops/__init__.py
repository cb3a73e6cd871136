"""Programs as Python loops over arrays, which numba compiles."""
