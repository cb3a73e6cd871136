"""Compilation of generated text to machine code: numba, LLVM, NVRTC, and a cache on disk."""
