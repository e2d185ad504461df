"""Learning and backpropagation, step by step."""
