"""Skills that teach each other, and which of them to train on."""
