"""Generated text to machine code: numba's cache on disk, gcc, NVRTC."""
