"""Transfer: a training that begins from what another one has learned."""
