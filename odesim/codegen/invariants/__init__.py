"""Linear invariants of right-hand sides: found by computation, or declared in the model and verified."""
