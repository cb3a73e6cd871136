"""What attention learns in context: regression by linear attention, one informative token, Markov chains."""
