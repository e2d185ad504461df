"""A walk through backpropagation for a terminal, and as JSON."""

from __future__ import annotations

from itertools import product
from typing import Any

from torch import Tensor

from ensue.data.layout import aligned
from ensue.study.foundations.backprop import Backpropagation, LayerTrace, Minibatch

FORMAT = 1
NAMES = {"logistic": "σ", "tanh": "tanh", "relu": "ReLU", "linear": "linear", "softmax": "softmax"}
SLOPE_TEXTS = {
    "logistic": "a·(1 − a)",
    "tanh": "1 − a²",
    "relu": "1 where z > 0, else 0",
    "linear": "1",
}
MOST_TERMS = 6  # of a sum that is written out


def number(value: Tensor | float) -> str:
    """
    >>> number(-0.18877), number(2.0), number(-1e-9)
    ('−0.188770', '2.000000', '0.000000')
    """
    return signed(f"{float(value):z.6f}")


def signed(text: str) -> str:
    """A number with a true minus."""
    return text.replace("-", "−")


def factor(value: float, digits: str) -> str:
    """
    >>> factor(-0.3, ".4g"), factor(0.3, ".4g")
    ('(−0.3)', '0.3')
    """
    text = signed(f"{value:{digits}}")
    return f"({text})" if value < 0 else text


def vector(values: Tensor) -> str:
    return "(" + ", ".join(number(value) for value in values) + ")"


def heading(found: Backpropagation) -> str:
    widths = " → ".join(map(str, found.widths))
    return (
        f"{widths}, {NAMES[found.activation]} inside, {NAMES[found.output]} at the end, cost "
        f"{'½‖a − y‖²' if found.cost_name == 'squares' else 'cross-entropy'}"
    )


def first_equation(found: Backpropagation) -> str:
    """What (1) is for this output and cost."""
    if found.cost_name == "cross-entropy":
        return "δ = a − y, as cross-entropy undoes the derivative of the output"
    if found.output == "softmax":
        return "δ = Jᵀ·(a − y), J = diag(a) − a·aᵀ: every z moves every a"
    return f"δ = (a − y)*g'(z), g' = {SLOPE_TEXTS[found.output]}"


def as_text(found: Backpropagation) -> str:
    lines = [heading(found), f"x = {vector(found.x)}   y = {vector(found.y)}", "", "forward"]
    for k, layer in enumerate(found.layers, 1):
        lines += _forward(found, layer, k)
    lines += [f"  C = {number(found.cost)}", "", "backward"]
    for k in range(len(found.layers), 0, -1):
        lines += _backward(found, found.layers[k - 1], k)
    if found.batch is not None:
        lines += _update(found.batch)
    lines += ["", f"largest difference from the automatic gradient: {found.difference:.1e}"]
    return "\n".join(lines)


def _update(batch: Minibatch) -> list[str]:
    """Every weight before and after."""
    many = len(batch.costs)
    lines = ["", f"one update, w ← w − {batch.rate:g}·∂C/∂w"]
    if many > 1:
        costs = ", ".join(map(number, batch.costs))
        lines[-1] += f", the mean over a minibatch of {many}"
        lines.append(f"  C of each: {costs}")
    rows = [["", "before", "∂C/∂w", "after"]]
    for name, before, slope, after in batch.weights():
        rows += [
            [f"{name}{unit}", *map(number, own)] for unit, *own in numbered(before, slope, after)
        ]
    lines += [f"  {line}" for line in aligned(rows)]
    return [*lines, f"  C = {number(batch.cost)} → {number(batch.cost_after)}"]


def numbered(*values: Tensor) -> list[tuple[Any, ...]]:
    """Each entry of tensors of one shape with its place, "[2,1]" or "[2]"."""
    shape = values[0].shape
    places = product(*(range(size) for size in shape))
    return [
        (f"[{','.join(str(k + 1) for k in at)}]", *(float(own[at]) for own in values))
        for at in places
    ]


def _forward(found: Backpropagation, layer: LayerTrace, k: int) -> list[str]:
    last = k == len(found.layers)
    name = NAMES[found.output if last else found.activation]
    lines = [f"  layer {k}: z = W·a + b, a = {name}(z)"]
    for unit, row in enumerate(layer.weight):
        total = f"z{unit + 1}"
        if len(row) <= MOST_TERMS:
            terms = zip(row, layer.given, strict=True)
            sums = " + ".join(f"{float(w):g}·{factor(float(v), '.4g')}" for w, v in terms)
            total += signed(f" = {sums} + {float(layer.bias[unit]):g}".replace("+ -", "− "))
        lines.append(
            f"    {total} = {number(layer.z[unit])}   a{unit + 1} = {number(layer.a[unit])}"
        )
    return lines


def _backward(found: Backpropagation, layer: LayerTrace, k: int) -> list[str]:
    last = k == len(found.layers)
    lines = [f"  layer {k}"]
    if last:
        lines.append(f"    (1) {first_equation(found)}")
    else:
        slope = SLOPE_TEXTS[found.activation]
        lines.append(f"    (2) δ = (W{k + 1}ᵀ·δ{k + 1})*g'(z{k}), g' = {slope}")
        lines.append(f"        Wᵀ·δ = {vector(layer.backward)}   g' = {vector(layer.slope)}")
    lines.append(f"        δ{k} = {vector(layer.delta)}")
    lines.append(f"    (3) ∂C/∂W{k} = δ{k}·aᵀ, a = {vector(layer.given)}")
    lines += [f"        {vector(row)}" for row in layer.weight_gradient]
    lines.append(f"    (4) ∂C/∂b{k} = δ{k} = {vector(layer.bias_gradient)}")
    return lines


def as_json(found: Backpropagation) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "widths": list(found.widths),
        "activation": found.activation,
        "output": found.output,
        "cost_name": found.cost_name,
        "x": found.x.tolist(),
        "y": found.y.tolist(),
        "cost": found.cost,
        "difference": found.difference,
        "layers": [
            {
                "weight": own.weight.tolist(),
                "bias": own.bias.tolist(),
                "z": own.z.tolist(),
                "a": own.a.tolist(),
                "delta": own.delta.tolist(),
                "weight_gradient": own.weight_gradient.tolist(),
                "bias_gradient": own.bias_gradient.tolist(),
            }
            for own in found.layers
        ],
        "update": None if found.batch is None else _update_json(found.batch),
    }


def _update_json(batch: Minibatch) -> dict[str, Any]:
    return {
        "rate": batch.rate,
        "costs": list(batch.costs),
        "weights": {
            name: {"before": b.tolist(), "gradient": g.tolist(), "after": a.tolist()}
            for name, b, g, a in batch.weights()
        },
        "cost": batch.cost,
        "cost_after": batch.cost_after,
    }
