"""Training of any model: optimizers, checkpoints, the loop."""
