"""The class of a picture: is it a ring, a plus or a times sign?

Run it with `python examples/image.py`: a few seconds.
"""

import numpy as np
from numpy.typing import NDArray

from ensue import ImageModel, load

# Rows are pairs of a picture and its class. A picture is an array of bytes, (height, width) or
# (channels, height, width), or a file's name; `fit` also takes a folder with one for each class.
draw = np.random.default_rng(1)
KINDS = ["ring", "plus", "times"]


def picture(kind: str) -> NDArray[np.uint8]:
    pixels = draw.integers(0, 100, (12, 12), np.uint8)  # noise, and a sign of 5 × 5 somewhere
    row, column = draw.integers(0, 8, 2)
    sign = pixels[row : row + 5, column : column + 5]
    if kind == "ring":
        sign[[0, 4]] = sign[:, [0, 4]] = 255
    elif kind == "plus":
        sign[2] = sign[:, 2] = 255
    else:
        sign[range(5), range(5)] = sign[range(5), range(4, -1, -1)] = 255
    return pixels


train = [(picture(kind), kind) for kind in KINDS * 200]
test = [(picture(kind), kind) for kind in KINDS * 50]

# Eight filters of 3 × 3, a pool of 2 × 2, sixteen filters, a pool, a layer of 32. Larger: your own
# pictures, model={"blocks": "32 max 64 max 128 max"}, with norm and augmentation as by default.
model = ImageModel(
    model={"blocks": "8 max 16 max", "hidden": [32], "norm": "none", "batch_rows": 16}
    | {"shift": 0.0, "rotate": 0.0, "zoom": 0.0},
    train={"epochs": 6, "rate": 0.005},
)
model.fit(train)
print(f"{model}\n")

# For comparison: a linear model of the pixels, which fails because the sign moves.
print(model.evaluate(test).as_text())

plus = picture("plus")
answer = model.predict([plus])[0]
print("\na plus:", ", ".join(f"{name} {p:.3f}" for name, p in answer.probabilities.items()))

model.save("example-models/image")
again = load("example-models/image")
print("the same answer after loading:", again.predict([plus])[0] == answer)
