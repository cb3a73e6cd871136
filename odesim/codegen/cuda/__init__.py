"""Programs as CUDA C++ kernels."""
