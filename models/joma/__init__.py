"""An MLP and attention trained together, where the attention follows from the weights of the MLP."""
