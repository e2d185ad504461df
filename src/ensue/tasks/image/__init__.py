"""The class of a picture."""
