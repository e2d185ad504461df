"""Commands that look into learning, gradients and cells."""
