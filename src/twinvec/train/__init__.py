"""Training: examples to a model folder, with torch (extra ``train``)."""
