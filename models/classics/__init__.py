"""What theorists of learning compare with: deep linear networks, and a committee machine with its teacher."""
