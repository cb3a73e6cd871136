"""Tokens as particles on a sphere that attract each other, with depth as time."""
