"""Two layers of MLP whose every node is a query with attention logits of its own, and a linear decoder."""
