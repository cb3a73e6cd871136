"""What the transformer is trained on."""
