"""The solved members of a mixed forecast: repeated seasons, ridge, smoothing."""
