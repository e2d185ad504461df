"""From the graph of a step to C++: which values are kept where, in which order, in which words."""
