"""Two texts, and what they are to each other: does the second follow from the first?

Run it with `python examples/match.py`: a few seconds.
"""

import random
from itertools import product

from ensue import Matcher, load

# Rows are pairs of two texts and their class (numbers would make it a score). The second text
# follows if its last word means the same as a word of the first.
draw = random.Random(1)
SAME = {"big": "large", "small": "little", "quick": "fast", "dark": "black", "bright": "light"}
VERBS = ["saw", "bought", "lost", "drew", "sold", "had"]
THINGS = ["dog", "cat", "car", "hat", "boat", "cup", "door", "bird"]
rows = []
for verb, thing, word in product(VERBS, THINGS, SAME):
    first = f"we {verb} a {word} {thing}"
    other = draw.choice([synonym for synonym in SAME if synonym != word])
    rows.append(((first, f"the {thing} was {SAME[word]}"), "follows"))
    rows.append(((first, f"the {thing} was {SAME[other]}"), "open"))
draw.shuffle(rows)
train, test = rows[:380], rows[380:]  # no pair is in both
print("rows look like this:", *train[:3], sep="\n  ")

# One encoder reads both texts. Larger: model={"hidden_size": 256, "compare": "attention"}, where
# every word attends to the other text first.
model = Matcher(
    model={"cell": "GRU", "hidden_size": 32, "embedding_size": 32},
    train={"epochs": 10, "rate": 0.01},
)
model.fit(train)
print(f"\n{model}\n")

# For comparison: a linear model of the overlap between the words of the two texts.
print(model.evaluate(test).as_text())

for adjective in ("fast", "light"):
    pair = "we saw a quick hat", f"the hat was {adjective}"
    answer = model.predict([pair])[0]
    print(f"\n{pair}: {answer.label}, p = {answer.probabilities[answer.label]:.3f}", end="")

model.save("example-models/match")
again = load("example-models/match")
print("\n\nthe same answer after loading:", again.predict([pair])[0] == answer)
