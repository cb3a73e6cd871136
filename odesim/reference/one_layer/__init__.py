"""The one-layer transformer of Scan & Snap, in the parameters Y and Z."""
