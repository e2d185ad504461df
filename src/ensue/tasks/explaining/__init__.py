"""Which parts of an input an answer rests on, and where the heads of a Transformer look."""
