"""Runs: one system or the members of an ensemble, from its numbers to its results."""
