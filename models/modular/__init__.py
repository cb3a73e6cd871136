"""Modular addition by two-layer networks with squares as activation: frequencies that compete in a neuron, and what decay leaves."""
