"""Self-supervised learning without negative pairs (BYOL, SimSiam, DirectPred): what keeps representations from collapse."""
