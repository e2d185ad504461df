"""What is read: each input in a file of its own."""
