"""Evaluate vectors as the papers do, with confidence intervals and significance tests."""
