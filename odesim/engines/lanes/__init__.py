"""Ensembles in the lanes of a core's vectors, each member with its own step."""
