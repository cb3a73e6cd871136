"""Ensembles on a GPU, one thread for each member."""
