"""Programs as CUDA C++."""
