"""Several models of one task that answer as one."""
