"""What comes next in a text."""
