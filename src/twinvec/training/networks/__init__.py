"""The networks that can be trained. ``twinvec.training.prepare`` has the table of all kinds."""
