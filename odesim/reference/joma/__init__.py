"""The JoMA block: model, attention, and reduced dynamics of its logits."""
