"""A column of a table from the others: what does a house cost?

Run it with `python examples/table.py`: a few seconds.
"""

import math
import random

from ensue import TableModel, load

# Rows by column name, numbers and categories. A square metre costs more in an expensive town, and
# houses get cheaper with age until they are old enough to be sought after: the price is a product
# of these, and not linear.
draw = random.Random(1)
TOWNS = {"Delft": 3.0, "Leiden": 4.0, "Emmen": 1.5}


def house() -> dict[str, object]:
    area, age, town = draw.uniform(40, 200), draw.uniform(0, 150), draw.choice(list(TOWNS))
    price = area * TOWNS[town] * (1.2 - math.sin(math.pi * age / 150) / 2) * draw.gauss(1, 0.03)
    return {"area": round(area), "age": round(age), "town": town, "price": round(price)}


train, test = [house() for _ in range(800)], [house() for _ in range(200)]
print("a row looks like this:", train[0])

# Larger: model={"hidden": [128, 128]}, train={"epochs": 200}, members=5. With a target of texts it
# is a classifier; with model={"missing": "indicator"} cells may be empty.
model = TableModel(model={"hidden": [32, 32]}, train={"epochs": 40, "rate": 0.01})
model.fit(train, target="price")
print(f"\n{model}\n")

# Errors in the units of the price, the coverage of the intervals, and a linear baseline.
print(model.evaluate(test).as_text())

questions = [{"area": 93, "age": 20, "town": town} for town in TOWNS]
answers = model.predict(questions)
for question, answer in zip(questions, answers, strict=True):
    print(f"\n{question}: {answer.value:.0f}, {answer.low:.0f} to {answer.high:.0f}", end="")

model.save("example-models/table")
again = load("example-models/table")
print("\n\nthe same answers after loading:", again.predict(questions) == answers)
