"""Which format a file has, and what to do with files of other programs."""
