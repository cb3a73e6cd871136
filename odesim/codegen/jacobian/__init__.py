"""Jacobians: dense, sparse, and by the chain rule through structure."""
