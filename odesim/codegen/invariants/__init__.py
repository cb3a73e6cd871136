"""Linear invariants of right-hand sides, found or declared."""
