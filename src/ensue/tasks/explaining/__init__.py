"""Explanations: the parts of an input that an answer depends on, and the attention of
Transformers."""
