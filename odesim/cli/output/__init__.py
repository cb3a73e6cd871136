"""Formats the output of commands: JSON for programs, text in 80 columns for people."""
