"""Looking into models: where attention lies."""
