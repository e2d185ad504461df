"""The next steps of a series, with intervals: sales, and promotions that are known ahead.

Run it with `python examples/forecast.py`: a few seconds.
"""

from pathlib import Path

from ensue import Forecaster, load
from ensue.data.tasks.series import known_series

# Columns by name, a day in each row: sales_t = 0.5·sales_{t−1} + 2·promotion_t + noise of 0.1.
made = known_series("driven", 400)
shop = {"sales": made["value"], "promotion": made["drive"]}


def days(first: int, end: int) -> dict[str, list[float]]:
    return {name: values[first:end] for name, values in shop.items()}


# Larger: a column of dates (model={"time": "day"}), covariates, model={"hidden_size": 64}, more
# steps back and ahead, members=3. Families: recurrent, direct, segment, linear.
model = Forecaster(
    model={"family": "recurrent", "cell": "GRU", "hidden_size": 24, "normalise": "none"}
    | {"targets": ["sales"], "known": ["promotion"], "look_back": 8, "horizon": 7},
    train={"epochs": 30, "rate": 0.01},
)
model.fit(days(0, 300))
print(f"{model}\n")

# A backtest: a week ahead from each day of the last hundred, next to trivial forecasts. The first
# steps of the input are context only.
test = days(300 - model.history, 400)
print(model.evaluate(test).as_text())

# A forecast needs the known values of the days to come.
past, ahead = days(0, 393), {"promotion": shop["promotion"][393:]}
steps = model.predict(past, future=ahead)
print("\nday  forecast    interval       came")
for step, came in zip(steps, shop["sales"][393:], strict=True):
    sales = step.expected["sales"]
    interval = f"{sales.low:5.2f} to {sales.high:5.2f}"
    print(f"{step.time:>3}  {sales.value:8.2f}  {interval}  {came:5.2f}")

model.save("example-models/forecast")
Path("example-models/forecast.svg").write_text(model.picture(test, held_out=True), "utf-8")
again = load("example-models/forecast")
print("\nthe same answer after loading:", again.predict(past, future=ahead) == steps)
print("the last week as a picture: example-models/forecast.svg")
