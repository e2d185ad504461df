"""The kinds of inputs, each in a separate module."""
