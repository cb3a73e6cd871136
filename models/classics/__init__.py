"""Systems that theorists of learning compare with: deep linear networks."""
