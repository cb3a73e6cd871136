"""Layers of a transformer: forward functions with their gradients; all arrays have a leading axis of seeds R."""
