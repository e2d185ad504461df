"""From the graph of a step to C++: storage of values, order of computation, source text."""
