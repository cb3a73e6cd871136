"""What is learned as A -> B is not known as B -> A."""
