"""Programs as loops over arrays, for numba."""
