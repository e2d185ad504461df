"""The kinds of inputs, each in a separate file."""
