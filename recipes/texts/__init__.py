"""Training texts for a small encoder: where they come from, how they are cleaned, and what is kept out of them."""
