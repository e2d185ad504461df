"""Picture files: PNG, PGM and PPM, idx, and others by an extra."""
