"""A lesson: a cell of your own, trained inside a torch loop of your own.

The cells of this file begin with `# %%`: open it as a notebook (Jupyter with jupytext, VS Code,
PyCharm), or run it whole, which takes about 80 seconds on one core.

    python examples/lesson_cell.py
"""

# %% [markdown]
# # A cell of your own, in a loop of your own
#
# A recurrent network reads a sequence step by step and keeps a state. What it does in one step is
# its *cell*. We write one as equations, look at it, check its gradient, train it with plain torch,
# and compare it with torch's GRU.

# %%
import torch
from torch import nn

from ensue.cells import Cell
from ensue.data.tasks.memory import adding
from ensue.equations import Matrix, Vector, sigmoid, tanh
from ensue.layers import Recurrent

torch.manual_seed(1)

# %% [markdown]
# ## The cell
#
# A gate `u` decides, unit by unit, how much of the old value is replaced by a new one `n`.
# We declare the parameters: `W` multiplies the input `x`, `U` the state `h`, and each has two
# gates, stacked as in torch. The bias of the gate starts at −2, so u ≈ 0.12, and the untrained
# cell forgets slowly.


# %%
class Keep(Cell):
    """Keeps what it knows, unless the gate u lets something new in."""

    W, U, b = Matrix("x", "un"), Matrix("h", "un"), Vector("un", init={"u": -2.0})

    def step(self, x, h):
        u = sigmoid(self.W.u @ x + self.U.u @ h + self.b.u)
        n = tanh(self.W.n @ x + self.U.n @ h + self.b.n)
        return h + u * (n - h)


# %% [markdown]
# ## Look at it
#
# A notebook renders the equations and draws the step. Here they are as text, with the derivative
# that training will use: `∂y` comes back from the output, `∂h'` from the next step.

# %%
print(Keep().equations(), "\n")
print(Keep().equations().derivative_text(), "\n")
Keep()

# %% [markdown]
# ## Check the gradient
#
# Ensue derived that gradient from the equations. We check it against finite differences, for the
# input and for every parameter, in double precision.

# %%
layer = Recurrent(Keep(), input_size=2, hidden_size=3).double()
names, weights = zip(*layer.named_parameters(), strict=True)
x = torch.randn(5, 4, 2, dtype=torch.double, requires_grad=True)  # (time, batch, input)


def outputs(x, *weights):
    y, _ = torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), (x,))
    return y


correct = torch.autograd.gradcheck(outputs, (x, *weights))
print("the gradient agrees with finite differences:", correct, "\n")

# %% [markdown]
# ## Something to remember
#
# The adding problem: twenty numbers, two of them marked, one in each half; the answer is the sum
# of the two. Always answering 1 has a mean squared error of 1/6. To do better, a network must
# remember the first number until the end.

# %%
STEPS, HIDDEN, BATCH, UPDATES = 20, 16, 64, 300
task = adding(STEPS)


def batch_of(part, first, count):
    """x (time, batch, 2): numbers and marks; the sums (batch)."""
    batch = task.batch(seed=1, first=first, count=count, part=part)
    return torch.from_numpy(batch.x), torch.from_numpy(batch.targets)


# %% [markdown]
# ## A module like any other
#
# `Recurrent` runs a cell over a sequence and returns what `nn.GRU` does: the outputs of all steps,
# and the last state. So one module serves both.


# %%
class Adder(nn.Module):
    def __init__(self, recurrent):
        super().__init__()
        self.recurrent, self.read = recurrent, nn.Linear(HIDDEN, 1)

    def forward(self, x):
        y, _ = self.recurrent(x)  # (time, batch, hidden)
        return self.read(y[-1]).squeeze(-1)


# %% [markdown]
# ## The loop
#
# Plain torch, without Ensue: batches, a cost, `backward`, an optimiser, and the error on held-out
# rows.


# %%
def train(model):
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    held_x, held_sums = batch_of("validation", 0, 500)
    for update in range(UPDATES):
        x, sums = batch_of("train", update * BATCH, BATCH)
        cost = nn.functional.mse_loss(model(x), sums)
        optimiser.zero_grad()
        cost.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if (update + 1) % 100 == 0:
            with torch.no_grad():
                error = nn.functional.mse_loss(model(held_x), held_sums).item()
            print(f"  {update + 1:4} updates  error {error:.4f}")
    return error


# %%
layers = {"Keep": Recurrent(Keep(), 2, HIDDEN), "torch.nn.GRU": nn.GRU(2, HIDDEN)}
models, errors = {}, {}
for name, cell_layer in layers.items():
    print(name)
    models[name] = Adder(cell_layer)
    errors[name] = train(models[name])

# %% [markdown]
# ## Side by side

# %%
print(f"\n{'':14}parameters    error   (saying 1: {task.chance:.4f})")
for name, model in models.items():
    count = sum(p.numel() for p in model.recurrent.parameters())
    print(f"{name:14}{count:10,}{errors[name]:9.4f}")

# %% [markdown]
# ## How far back does it look?
#
# The derivative of the answer by each input shows what the network listens to. At the marked steps
# (with a star) it is near 1, because the answer is their sum; elsewhere it is near 0.

# %%
x, _ = batch_of("test", 0, 1)
x.requires_grad_()
models["Keep"](x).sum().backward()
slopes, marks = x.grad[:, 0, 0], x[:, 0, 1]
print("\nslope of the answer by each number")
for step in range(STEPS):
    length = round(20 * max(0.0, slopes[step].item()))
    print(f"{step + 1:4} {'*' if marks[step] else ' '} {'█' * length}".rstrip())

# %% [markdown]
# ## Further
#
# Change the step: let the gate see only x, start its bias at +2, add a second state part that
# is never overwritten. Every line above stays the same. Put the class into a file, `keep.py`:
# `ensue cell show keep.py` shows it, and `--set model.cell=keep.py:Keep` uses it in any task.
