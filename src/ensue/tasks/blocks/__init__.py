"""Parts that networks share: embeddings, encoders, pooling, heads, decoders."""
