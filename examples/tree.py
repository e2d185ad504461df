"""Nested expressions as trees: their value depends on the parts, and on the order of the two sides.

Run it with `python examples/tree.py`: a few seconds.
"""

import random

from ensue import TreeClassifier, load

# A tree in brackets, with a label at each node: (T (F F) implies (T not (F F))).
draw = random.Random(1)
WORDS = {"and": min, "or": max, "implies": lambda a, b: max(1 - a, b)}


def expression(depth: int) -> tuple[str, int]:
    """In brackets, and its value: 0 is F, 1 is T."""
    if not depth:
        value = draw.randrange(2)
        return f"({'FT'[value]} {'FT'[value]})", value
    (left, a), (right, b) = expression(depth - 1), expression(draw.randrange(depth))
    if draw.random() < 0.5:
        left, a, right, b = right, b, left, a
    word = draw.choice(list(WORDS))
    value = WORDS[word](a, b)
    return f"({'FT'[value]} {left} {word} {right})", value


rows = [*dict.fromkeys(expression(draw.randint(1, 3))[0] for _ in range(800))]
train, test = rows[:-80], rows[-80:]  # no tree is in both
print("rows look like this:", *train[:3], sep="\n  ")

# One cell runs from the leaves to the root, with a matrix for each position of a child; with
# model={"combine": "sum"} the order is lost. Larger: model={"hidden_size": 256}.
model = TreeClassifier(
    model={"hidden_size": 24, "embedding_size": 16, "batch_rows": 16},
    train={"epochs": 6, "rate": 0.02},
)
model.fit(train)
print(f"\n{model}\n")

# For comparison: the most frequent class.
print(model.evaluate(test).as_text())

for text in ("((T) implies (F))", "((F) implies (T))"):
    answer = model.predict([text])[0]
    print(f"\n{text}: {answer.tree}, p = {answer.probability:.3f}", end="")

model.save("example-models/tree")
again = load("example-models/tree")
print("\n\nthe same answer after loading:", again.predict([text])[0] == answer)
