"""A text from a text: some English phrases become Spanish ones.

Run it with `python examples/translate.py`: a few seconds.
"""

import random
from itertools import product

from ensue import Translator, load

# Rows are pairs of texts. The adjective moves after the noun, and agrees with its gender.
VERBS = {"we see": "vemos", "they buy": "compran", "I have": "tengo", "you sell": "vendes"}
NOUNS = {"car": "el coche", "dog": "el perro", "boat": "el barco", "cat": "el gato"}
NOUNS |= {"house": "la casa", "table": "la mesa", "door": "la puerta", "cup": "la taza"}
WORDS = {"red": "roj", "black": "negr", "white": "blanc", "old": "viej", "small": "pequeñ"}
rows = []
for verb, noun, word in product(VERBS, NOUNS, WORDS):
    ending = "a" if NOUNS[noun].startswith("la") else "o"
    rows.append((f"{verb} the {word} {noun}", f"{VERBS[verb]} {NOUNS[noun]} {WORDS[word]}{ending}"))
random.Random(1).shuffle(rows)
train, test = rows[:130], rows[130:]  # no phrase is in both
print("rows look like this:", *train[:3], sep="\n  ")

# An encoder reads the source; a decoder writes and attends to the words it needs. Larger: real
# pairs, text={"level": "subwords"}, model={"hidden_size": 256} with its dropout and smoothing, or
# model={"family": "transformer"}.
model = Translator(
    model={"cell": "GRU", "hidden_size": 32, "embedding_size": 32, "batch_rows": 16}
    | {"dropout_input": 0.0, "dropout_output": 0.0, "smoothing": 0.0},
    train={"epochs": 15, "rate": 0.02},
)
model.fit(train)
print(f"\n{model}\n")

# BLEU and the share of exact translations of phrases that it has never seen.
print(model.evaluate(test).as_text())

for text, _ in test[:2]:
    answer = model.predict([text], beam=5)[0]
    print(f"\n{text} → {answer.text}", end="")

model.save("example-models/translate")
again = load("example-models/translate")
print("\n\nthe same answer after loading:", again.predict([text], beam=5)[0] == answer)
