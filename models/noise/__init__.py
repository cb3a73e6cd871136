"""Stochastic gradients as stochastic differential equations."""
