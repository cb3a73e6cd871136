"""Gradient descent at the edge of stability, as maps: where the learning rate, not the loss, decides what is learned."""
