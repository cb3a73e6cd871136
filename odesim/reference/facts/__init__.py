"""Facts of three tokens: sequences (source, relation, target), and the decoder that is all of the one-layer model on them."""
