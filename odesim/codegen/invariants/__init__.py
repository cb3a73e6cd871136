"""Linear invariants of right sides, found or declared."""
