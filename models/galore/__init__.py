"""A weight trained in the leading directions of its gradient."""
