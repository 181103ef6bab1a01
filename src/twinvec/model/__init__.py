"""Models on disk: folder layout, saving, the hub, tokenizers, identity."""
