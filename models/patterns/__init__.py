"""How patterns of attention arise: one token that tells the label is found, among tokens that tell equally much none is preferred."""
