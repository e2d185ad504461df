"""Files and folders that are either complete or absent."""
