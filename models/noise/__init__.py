"""Stochastic gradients as stochastic differential equations; what steps of such equations and a double well with noise do."""
