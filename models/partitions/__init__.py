"""Tokens that play one role come to have one embedding."""
