"""A number from a text, with its interval: how many points does a review give?

Run it with `python examples/regress.py`: a few seconds.
"""

import random

from ensue import Regressor, load

# Rows are pairs of a text and a number: a good word is worth 8 points and a bad one -8, words after
# "but" count twice, and the critic's mood adds some noise.
draw = random.Random(1)
GOOD = ["fine", "lovely", "bright", "warm", "clever"]
BAD = ["dull", "long", "flat", "loud", "empty"]


def review() -> tuple[str, float]:
    first, last = (draw.choices(GOOD + BAD, k=draw.randint(1, 3)) for _ in range(2))
    worth = [8 if word in GOOD else -8 for word in first + last + last]
    text = f"a film that is {' and '.join(first)}, but {' and '.join(last)}"
    return text, 50 + sum(worth) + draw.gauss(0, 2)


train, test = [review() for _ in range(1000)], [review() for _ in range(200)]
print("a row looks like this:", train[0])

# Larger: real reviews, model={"hidden_size": 256}, train={"epochs": 20, "patience": 3}, members=3.
model = Regressor(
    model={"cell": "GRU", "hidden_size": 24, "embedding_size": 16, "pooling": "mean"},
    train={"epochs": 8, "rate": 0.02},
)
model.fit(train)
print(f"\n{model}\n")

# Errors in points (rmse, mae), the coverage of the intervals, and two baselines.
print(model.evaluate(test).as_text())

# An answer is the expected value, with a 90 % prediction interval.
for text in ("a film that is dull, but warm", "a film that is warm, but dull"):
    answer = model.predict([text])[0]
    print(f"\n{text}: {answer.value:.0f} points, {answer.low:.0f} to {answer.high:.0f}", end="")

model.save("example-models/regress")
again = load("example-models/regress")
print("\n\nthe same answer after loading:", again.predict([text])[0] == answer)
