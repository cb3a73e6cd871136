"""Shared foundations: arrays, run options, backends, caches, memory checks, signals, the GPU."""
