"""Something in, a class, several labels or a number out: any input, any target."""
