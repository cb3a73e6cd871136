"""Programs as text of numpy, numba and CUDA, and what turns text into machine code."""
