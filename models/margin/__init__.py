"""Attention as a maximiser of margins: which tokens it selects in the end, and which of all selecting weights it finds."""
