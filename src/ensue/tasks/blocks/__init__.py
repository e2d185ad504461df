"""Blocks of networks: embeddings, encoders, pooling, heads, decoders."""
