"""Sequences whose places have parents: a first layer of attention finds the place that a place depends on."""
