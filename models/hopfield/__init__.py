"""Associative memories, from signs to a retrieval that is a step of attention."""
