"""Studies of models: measurements of what they can learn."""
