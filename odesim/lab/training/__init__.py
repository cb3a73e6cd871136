"""Training of any Model: the loop, optimizers, recording, checkpoints, random numbers."""
