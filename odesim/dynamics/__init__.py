"""What a System does in the long run, from its exact Jacobian: rest states, branches, exponents."""
