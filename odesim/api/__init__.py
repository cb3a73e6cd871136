"""The public functions: integrate, ensemble, train, compare, resume, rerun."""
