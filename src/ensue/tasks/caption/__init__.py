"""A picture becomes a sentence."""
