"""Jacobians of right-hand sides: dense, or small blocks plus a matrix of low rank."""
