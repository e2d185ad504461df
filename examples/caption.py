"""A sentence from a picture: which shape is on it, in which colour?

Run it with `python examples/caption.py`: a few seconds.
"""

import numpy as np
from numpy.typing import NDArray

from ensue import Captioner, load

# Rows are pairs of a picture, an array of bytes (channels, height, width), and its caption.
draw = np.random.default_rng(1)
COLOURS = {"red": (220, 40, 40), "green": (30, 150, 70), "blue": (40, 100, 230)}


def scene() -> tuple[NDArray[np.uint8], str]:
    colour, kind = draw.choice(list(COLOURS)), draw.choice(["square", "cross"])
    pixels = draw.integers(200, 255, (3, 12, 12), np.uint8)  # grey paper, and a shape of 5 × 5
    row, column = draw.integers(0, 8, 2)
    shape = pixels[:, row : row + 5, column : column + 5]
    paint = np.array(COLOURS[colour])[:, None]
    if kind == "square":
        shape[:] = paint[:, None]
    else:
        shape[:, 2] = shape[:, :, 2] = paint
    return pixels, f"here is a {colour} {kind}"


train, test = [scene() for _ in range(400)], [scene() for _ in range(100)]

# Filters make regions of the picture; a decoder writes one word after another and attends to the
# regions it needs. Larger: `ensue data make shapes`, 20,000 pictures with two shapes, in
# docs/tutorials/caption.md.
small = {"blocks": "16x5/2", "hidden_size": 24, "embedding_size": 16, "batch_rows": 16}
undisturbed = {"dropout_input": 0.0, "dropout_output": 0.0, "dropout_regions": 0.0}
model = Captioner(
    model=small | undisturbed,
    train={"epochs": 8, "rate": 0.01, "schedule": "constant", "averaging": "off"},
)
model.fit(train)
print(f"{model}\n")

# BLEU, the share of captions that are exact, and how often the colour and the shape are right.
print(model.evaluate(test).as_text())

pixels, caption = test[0]
answer = model.predict([pixels])[0]
print(f"\n{caption!r} is described as {answer.text!r}")

model.save("example-models/caption")
again = load("example-models/caption")
print("the same answer after loading:", again.predict([pixels])[0] == answer)
