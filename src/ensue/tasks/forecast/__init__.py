"""The next steps of a series, with intervals."""
