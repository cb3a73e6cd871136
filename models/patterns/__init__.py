"""How patterns of attention arise: one token that tells the answer is found, and among tokens that tell it equally nothing is preferred."""
