"""A cell of your own: a leaky memory m, read through a late gate.

The gate sees the memory after it was written, through its own matrix, and is normalised over its
features. Declare the parameters and write the step as equations: lengths, batches, layers and
derivatives follow from them.

    python examples/your_own_cell.py
"""

import torch

from ensue.cells import Cell
from ensue.equations import Matrix, Vector, mean, sigmoid, sqrt, tanh
from ensue.layers import Recurrent


class LateGate(Cell):
    """Writes a leaky memory m, then decides from the new m what of it to show."""

    W, U, V, b = Matrix("x", "ng"), Matrix("h", "ng"), Matrix("m"), Vector("ng")

    def step(self, x, h, m):
        n = tanh(self.W.n @ x + self.U.n @ h + self.b.n)
        m = 0.9 * m + 0.1 * n
        s = self.W.g @ x + self.U.g @ h + self.V @ m
        d = s - mean(s)
        g = sigmoid(d / sqrt(mean(d * d) + 1e-5) + self.b.g)
        return g * tanh(m), m


def main() -> None:
    print(LateGate().equations())
    torch.manual_seed(1)
    layer = Recurrent(LateGate(), input_size=8, hidden_size=16, num_layers=2, bidirectional=True)
    x, lengths = torch.randn(20, 3, 8), torch.tensor([20, 5, 12])  # (time, batch, input)
    y, state = layer(x, lengths=lengths)
    y.square().sum().backward()
    print(f"\ny {tuple(y.shape)}, {len(state)} states of {', '.join(LateGate().parts)}")
    print("every parameter has a gradient:", all(p.grad is not None for p in layer.parameters()))


if __name__ == "__main__":
    main()
