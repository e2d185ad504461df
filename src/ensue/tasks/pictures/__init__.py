"""Pictures as rows of bytes."""
