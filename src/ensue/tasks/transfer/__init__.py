"""Transfer: training that begins from another model, its base."""
