"""Layers of a transformer: each file holds a forward function and, beside it, its gradient; a leading axis of seeds R everywhere."""
