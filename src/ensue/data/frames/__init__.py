"""Data frames of any library as rows, and answers as columns of the same kind of frame."""
