"""What Ensue does, shown in a terminal within minutes: `translation` of written dates, and what it
means that a `cell` is its equations."""
