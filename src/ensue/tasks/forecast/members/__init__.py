"""The members of a mixed forecast that are solved: repeated seasons, ridge, smoothing."""
