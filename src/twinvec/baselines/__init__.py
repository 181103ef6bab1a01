"""The other systems of the papers, usable wherever a model is."""
