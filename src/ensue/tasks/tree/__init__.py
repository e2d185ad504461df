"""The class of a tree, and of each of its nodes."""
