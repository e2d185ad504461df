"""What comes next in a text: a language model that learns which verb a subject needs.

Run it with `python examples/language.py`: a few seconds.
"""

import random

from ensue import LanguageModel, load

# Rows are lines of text. The verb agrees with the subject, which may be some words before it:
# "the dogs near the cat run". Counts of the last words cannot know that.
draw = random.Random(1)
NOUNS = ["dog", "cat", "bird"]


def line() -> str:
    number, words = draw.choice(["", "s"]), ["the"]
    words.append(draw.choice(NOUNS) + number)
    if draw.random() < 0.5:
        other = draw.choice(NOUNS) + draw.choice(["", "s"])
        words += [draw.choice(["near", "behind"]), "the", other]
    return " ".join([*words, draw.choice(["run", "sleep"]) + ("" if number else "s")])


train, test = [line() for _ in range(1500)], [line() for _ in range(300)]
print("lines look like this:", *train[:3], sep="\n  ")

# Larger: your own text, one sentence per line, and model={"hidden_size": 400, "layers": 2, "tied":
# True} with its dropout of 0.3; model={"family": "ngram", "order": 5} counts, without training.
model = LanguageModel(
    model={"cell": "GRU", "layers": 1, "hidden_size": 32, "embedding_size": 16}
    | {"columns": 8, "steps": 30, "dropout_input": 0.0, "dropout_output": 0.0},
    train={"epochs": 6, "rate": 0.02},
)
model.fit(train)
print(f"\n{model}\n")

# Perplexity: the number of equally likely words among which it has to choose, on average.
print(model.evaluate(test).as_text())

# Which of two lines is more probable? In bits: the more surprising, the more bits.
for text in ("the dogs near the cat run", "the dogs near the cat runs"):
    answer = model.predict([text])[0]
    print(f"\n{text}: {sum(answer.bits):.1f} bits, {answer.bits[-2]:.1f} for the verb", end="")

model.save("example-models/language")
again = load("example-models/language")
print("\n\nthe same answer after loading:", again.predict([text])[0] == answer)
