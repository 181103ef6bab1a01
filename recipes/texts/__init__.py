"""Training texts for a small encoder: sources, cleaning, and removal of evaluation texts."""
