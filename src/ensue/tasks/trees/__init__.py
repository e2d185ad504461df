"""Trees in brackets: tokens, arrays, pictures, and answers at each node."""
