"""The inference engine: a model folder to vectors, without torch."""
