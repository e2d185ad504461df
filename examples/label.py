"""A label for each word of a text: which words of a date are its day, month and year?

Run it with `python examples/label.py`: about 25 seconds on one core.
"""

from ensue import Labeller, load
from ensue.data.tasks import dates

# Rows are pairs of tokens and their labels. These dates are made up, in the formats of five
# languages; no day of the training part is in the test part.
train = [(list(date.tokens), list(date.tags)) for date in dates(1, "train", 500)]
test = [(list(date.tokens), list(date.tags)) for date in dates(1, "test", 200)]
print("a row looks like this:", *train[2], sep="\n  ")

# The model sees a word as its vector, its letters and its shape. Larger: more rows,
# model={"hidden_size": 256, "output": "crf"}. Labels of spans (B-PER I-PER O) are recognised and
# scored as spans.
model = Labeller(
    model={"cell": "GRU", "hidden_size": 24, "embedding_size": 16, "character_size": 8},
    train={"epochs": 4, "rate": 0.02},
)
model.fit(train)
print(f"\n{model}\n")

# For comparison: each word's most frequent label, which cannot know whether 12 is a day.
print(model.evaluate(test).as_text())

for text in ("the 3rd of May 1997", "martes, 12 de octubre de 1492"):
    answer = model.predict([text])[0]
    pairs = zip(answer.tokens, answer.labels, strict=True)
    print("\n" + " ".join(f"{token}/{label}" for token, label in pairs), end="")

model.save("example-models/label")
again = load("example-models/label")
print("\n\nthe same answer after loading:", again.predict([text])[0] == answer)
