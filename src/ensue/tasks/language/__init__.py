"""Language models: the probability of a text, and its continuation."""
