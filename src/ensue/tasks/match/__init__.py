"""Two sequences and what they are to each other: a class or a score."""
