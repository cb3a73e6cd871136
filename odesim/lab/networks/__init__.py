"""Networks with hand-written gradients that several tasks train, and measures of them."""
