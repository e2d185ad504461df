"""The class of a text: is a guest content?

Run it with `python examples/classify.py`: a few seconds.
"""

import random
from itertools import product

from ensue import Classifier, load

# Rows are pairs of a text and its class. "Nobody" reverses the meaning of a sentence: no single
# word decides the class, and a model has to read them all.
WHO = {"everybody": True, "we all": True, "my wife": True, "nobody": False, "hardly anyone": False}
WORDS = {"clean": True, "lovely": True, "quiet": True, "dirty": False, "noisy": False, "bad": False}
THINGS, HOW = ["room", "food", "pool", "street", "view"], ["", "very ", "really "]
rows = []
for who, thing, how, word in product(WHO, THINGS, HOW, WORDS):
    text = f"{who} thought that the {thing} was {how}{word}"
    rows.append((text, "content" if WHO[who] == WORDS[word] else "cross"))
random.Random(1).shuffle(rows)
train, test = rows[:350], rows[350:]  # no sentence is in both
print("rows look like this:", *train[:3], sep="\n  ")

# A GRU reads the words in both directions; a tenth of the rows is held out for early stopping.
# Larger: your own texts, model={"hidden_size": 256, "layers": 2}, train={"epochs": 20}, members=3.
model = Classifier(
    model={"cell": "GRU", "hidden_size": 24, "embedding_size": 16},
    train={"epochs": 12, "rate": 0.02},
)
model.fit(train)
print(f"\n{model}\n")

# Sentences that it has never seen. Next to the scores: baselines without a network.
print(model.evaluate(test).as_text())

# An answer has the probability of every class.
for text in ("everybody thought that the bed was clean", "nobody thought that the bed was clean"):
    answer = model.predict([text])[0]
    print(f"\n{text}: {answer.label}, p = {answer.probabilities[answer.label]:.3f}", end="")

# A saved model is a folder of plain files; `load` recognises its task.
model.save("example-models/classify")
again = load("example-models/classify")
print("\n\nthe same answer after loading:", again.predict([text])[0] == answer)
