"""The one-layer transformer of Scan & Snap."""
