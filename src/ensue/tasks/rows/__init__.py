"""Rows of sequences: read from files or memory, encoded, batched."""
