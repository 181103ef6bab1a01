"""Models that score two texts together."""
