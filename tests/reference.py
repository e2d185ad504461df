"""Every recurrent cell in plain NumPy, with backpropagation through time derived by hand.

Slow and separate on purpose: it shares no code with the engine, so that agreement between
the two means something.

Conventions. Vectors are rows, arrays are float64. `x` is (time, batch, input), `dy` and `y`
are (time, batch, H), a state is a tuple of (batch, H) parts whose first part is the output
(a cell that keeps the x before has a part of its width).
A parameter with gates "ifgo" is one stacked array: gate k owns rows k*H to (k+1)*H. In the
equations below `W.k` are the rows of gate k, `*` is elementwise, a product `W.k x` is written
for column vectors, and a prime marks the new state. `dv` in code is the gradient of the cost
by v; `_pre` marks the value a sigmoid or tanh is applied to.

A cell writes `step` and `step_backward`; `Cell.forward` and `Cell.backward` are the one loop.

    cell = LSTM()
    y, final, tape = cell.forward(params, x, (h, c), lengths=lengths)
    dparams, dx, dstate = cell.backward(params, tape, dy, dfinal)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Params = Mapping[str, Array]
Grads = dict[str, Array]
State = tuple[Array, ...]
Gradients = tuple[Grads, Array, State]  # by the parameters, by x and by the old state
Saved = Any  # what one step keeps for its own backward

NORM_EPSILON = 1e-5

# --- small parts ------------------------------------------------------------------------


def sigmoid(v: Array) -> Array:
    """1 / (1 + exp(-v)), in the form that cannot overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * v))


def sigmoid_slope(s: Array) -> Array:
    """The derivative of sigmoid where its value is s."""
    return s * (1.0 - s)


def tanh_slope(t: Array) -> Array:
    """The derivative of tanh where its value is t."""
    return 1.0 - t * t


class Normed(NamedTuple):
    """(v - mean) / deviation over the last axis, with deviation = sqrt(variance + 1e-5)."""

    value: Array
    deviation: Array

    def backward(self, dvalue: Array) -> Array:
        """dv = (dn - mean(dn) - n * mean(dn * n)) / deviation, as d deviation / dv_j = n_j / H."""
        mean = dvalue.mean(axis=-1, keepdims=True)
        along = (dvalue * self.value).mean(axis=-1, keepdims=True)
        dv: Array = (dvalue - mean - self.value * along) / self.deviation
        return dv


def normalise(v: Array) -> Normed:
    """The layer norm of v without gain or bias, with the biased variance."""
    centred = v - v.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + NORM_EPSILON)
    return Normed(centred / deviation, deviation)


class Gate(NamedTuple):
    """The affine map W x + U v + b, for one gate or for several stacked; or its gradient."""

    W: Array
    U: Array
    b: Array

    def apply(self, x: Array, v: Array) -> Array:
        return x @ self.W.T + v @ self.U.T + self.b

    def backward(self, x: Array, v: Array, dout: Array) -> tuple[Gate, Array, Array]:
        """The gradients by (W, U, b), by x and by v."""
        return Gate(dout.T @ x, dout.T @ v, dout.sum(axis=0)), dout @ self.W, dout @ self.U


def together(params: Params) -> Gate:
    """All gates as one map, for cells whose gates all read the same h."""
    return Gate(params["W"], params["U"], params["b"])


def apart(params: Params, count: int) -> list[Gate]:
    """One map per gate, for cells whose gates read different things."""
    parts = (np.split(p, count) for p in together(params))
    return [Gate(*rows) for rows in zip(*parts, strict=True)]


def stacked(*grads: Gate) -> Grads:
    """The gradients of separate gates, in the layout of the parameters."""
    return {name: np.concatenate([getattr(g, name) for g in grads]) for name in Gate._fields}


# --- the time loop ----------------------------------------------------------------------


@dataclass(frozen=True)
class Masks:
    """What the dropping wrappers multiply by, each factor used as given (no rescaling).

    recurrent: (batch, H), one mask for all time. zoneout: per state part, (time, batch, H),
    1 takes the new value and 0 keeps the old.
    """

    recurrent: Array | None = None
    zoneout: tuple[Array, ...] | None = None


@dataclass(frozen=True)
class Tape:
    """What `forward` keeps: per time step the cell that ran and what it saved, and x's shape."""

    steps: list[tuple[Cell, Saved]]
    alive: NDArray[np.bool_]  # (time, batch, 1), False from a row's end on
    x_shape: tuple[int, ...]


class Reference(Protocol):
    """A recurrent network over whole sequences."""

    def forward(
        self,
        params: Params,
        x: Array,
        state: State,
        masks: Masks | None = None,
        lengths: Sequence[int] | None = None,
    ) -> tuple[Array, State, Tape]:
        """(y, final state, tape). From a row's end on, y is zero and the state is frozen."""
        ...

    def backward(self, params: Params, tape: Tape, dy: Array, dfinal: State) -> Gradients:
        """(dparams, dx, dstate) from the gradients by y and by the final state."""
        ...


class Cell(ABC):
    """One step and its hand-derived backward; the loop over time is written here, once."""

    @abstractmethod
    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        """x (batch, input) and the old state to the new state."""

    @abstractmethod
    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        """The gradient by the new state to those by the parameters, x and the old state."""

    def at(self, time: int, masks: Masks) -> Cell:
        """The cell that takes step `time`: a wrapper picks up its mask here."""
        return self

    def forward(
        self,
        params: Params,
        x: Array,
        state: State,
        masks: Masks | None = None,
        lengths: Sequence[int] | None = None,
    ) -> tuple[Array, State, Tape]:
        time, batch, _ = x.shape
        assert all(part.shape[0] == batch for part in state), "state and x differ in batch"
        ends = np.full(batch, time) if lengths is None else np.asarray(lengths)
        tape = Tape([], (np.arange(time)[:, None] < ends)[:, :, None], x.shape)
        y = np.zeros((time, *state[0].shape))
        for t, alive in enumerate(tape.alive):
            cell = self.at(t, masks or Masks())
            # Padding may hold anything, even NaN, and NaN times a zero gradient is NaN.
            new, saved = cell.step(params, np.where(alive, x[t], 0.0), state)
            tape.steps.append((cell, saved))
            y[t] = np.where(alive, new[0], 0.0)
            state = tuple(np.where(alive, n, old) for n, old in zip(new, state, strict=True))
        return y, state, tape

    def backward(self, params: Params, tape: Tape, dy: Array, dfinal: State) -> Gradients:
        dparams = {name: np.zeros(value.shape) for name, value in params.items()}
        dx = np.zeros(tape.x_shape)
        dstate = dfinal
        for t, (cell, saved) in reversed(list(enumerate(tape.steps))):
            alive = tape.alive[t]
            dnew = (dstate[0] + dy[t], *dstate[1:])
            dnew = tuple(np.where(alive, part, 0.0) for part in dnew)
            dstep, dx[t], dold = cell.step_backward(params, saved, dnew)
            for name, value in dstep.items():
                dparams[name] += value
            dstate = tuple(
                np.where(alive, d, before) for d, before in zip(dold, dstate, strict=True)
            )
        return dparams, dx, dstate


# --- activations of the simple cells ----------------------------------------------------


class Activation(Protocol):
    """h = g(v), where g may have parameters of its own."""

    def apply(self, params: Params, v: Array, size: int) -> Array:
        """v as the affine map gives it to h (batch, size)."""
        ...

    def backward(self, params: Params, v: Array, dh: Array) -> tuple[Grads, Array]:
        """The gradients by g's own parameters and by v."""
        ...


@dataclass(frozen=True)
class Elementwise:
    """A function of one number, with its derivative."""

    function: Callable[[Array], Array]
    derivative: Callable[[Array], Array]

    def apply(self, params: Params, v: Array, size: int) -> Array:
        return self.function(v)

    def backward(self, params: Params, v: Array, dh: Array) -> tuple[Grads, Array]:
        return {}, dh * self.derivative(v)


class PReLU:
    """v where v > 0, else a * v; at v = 0 the derivative is a. Parameter a (H,)."""

    def apply(self, params: Params, v: Array, size: int) -> Array:
        return np.where(v > 0, v, params["a"] * v)

    def backward(self, params: Params, v: Array, dh: Array) -> tuple[Grads, Array]:
        da = (dh * np.where(v > 0, 0.0, v)).sum(axis=0)
        return {"a": da}, dh * np.where(v > 0, 1.0, params["a"])


class Maxout:
    """The largest of k pieces, v = (batch, k * H); of tied pieces the first gets the gradient."""

    def apply(self, params: Params, v: Array, size: int) -> Array:
        largest: Array = v.reshape(len(v), -1, size).max(axis=1)
        return largest

    def backward(self, params: Params, v: Array, dh: Array) -> tuple[Grads, Array]:
        batch, size = dh.shape
        pieces = v.reshape(batch, -1, size)
        first = pieces.argmax(axis=1)[:, None, :]  # argmax takes the first of equals
        dpieces = np.zeros_like(pieces)
        np.put_along_axis(dpieces, first, dh[:, None, :], axis=1)
        return {}, dpieces.reshape(v.shape)


ACTIVATIONS: dict[str, Activation] = {
    "tanh": Elementwise(np.tanh, lambda v: tanh_slope(np.tanh(v))),
    "sigmoid": Elementwise(sigmoid, lambda v: sigmoid_slope(sigmoid(v))),
    "relu": Elementwise(lambda v: np.maximum(v, 0.0), lambda v: np.where(v > 0, 1.0, 0.0)),
    "linear": Elementwise(lambda v: v, np.ones_like),
    "prelu": PReLU(),
    "maxout": Maxout(),
}


# --- simple cells -----------------------------------------------------------------------


@dataclass(frozen=True)
class SimpleRNN(Cell):
    """h' = g(W x + U h + b). Parameters W (H, I), U (H, H), b (H,); k times the rows for
    maxout of k pieces; also a (H,) for prelu."""

    activation: str = "tanh"

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        (h,) = state
        v = together(params).apply(x, h)
        new = ACTIVATIONS[self.activation].apply(params, v, size=h.shape[1])
        return (new,), (x, h, v)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, v = saved
        dactivation, dv = ACTIVATIONS[self.activation].backward(params, v, dstate[0])
        dgate, dx, dh = together(params).backward(x, h, dv)
        return {**dgate._asdict(), **dactivation}, dx, (dh,)


def recurrent_perceptron(activation: str = "sigmoid") -> SimpleRNN:
    """y' = f(W x + U y + b): the simple cell whose state is its output, logistic by default."""
    return SimpleRNN(activation)


@dataclass(frozen=True)
class LeakyRNN(Cell):
    """n = tanh(W x + U h + b); h' = (1 - rate) * h + rate * n.

    Parameters W (H, I), U (H, H), b (H,). A learned rate is sigmoid(a), a (H,) a parameter.
    """

    rate: float = 0.5
    learned: bool = False

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        (h,) = state
        rate = sigmoid(params["a"]) if self.learned else np.full(h.shape[1], self.rate)
        n = np.tanh(together(params).apply(x, h))
        return ((1 - rate) * h + rate * n,), (x, h, n, rate)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, n, rate = saved
        (dnew,) = dstate
        dgate, dx, dh = together(params).backward(x, h, dnew * rate * tanh_slope(n))
        dparams = dgate._asdict()
        if self.learned:
            dparams["a"] = (dnew * (n - h)).sum(axis=0) * sigmoid_slope(rate)
        return dparams, dx, (dh + dnew * (1 - rate),)


# --- units with one gate, and GRUs ------------------------------------------------------


class MinimalGated(Cell):
    """Gates "nu"; W (2H, I), U (2H, H), b (2H,). The candidate reads h itself.

    n = tanh(W.n x + U.n h + b.n); u = sigmoid(W.u x + U.u h + b.u); h' = u * n + (1 - u) * h
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        (h,) = state
        n_pre, u_pre = np.split(together(params).apply(x, h), 2, axis=1)
        n, u = np.tanh(n_pre), sigmoid(u_pre)
        return (u * n + (1 - u) * h,), (x, h, n, u)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, n, u = saved
        (dnew,) = dstate
        dn_pre = dnew * u * tanh_slope(n)
        du_pre = dnew * (n - h) * sigmoid_slope(u)
        dgate, dx, dh = together(params).backward(x, h, np.hstack([dn_pre, du_pre]))
        return dgate._asdict(), dx, (dh + dnew * (1 - u),)


class MGU(Cell):
    """Gates "nu"; W (2H, I), U (2H, H), b (2H,). The candidate reads u * h.

    u = sigmoid(W.u x + U.u h + b.u); n = tanh(W.n x + U.n (u * h) + b.n); h' = u * n + (1 - u) * h
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        (h,) = state
        candidate, update = apart(params, 2)
        u = sigmoid(update.apply(x, h))
        n = np.tanh(candidate.apply(x, u * h))
        return (u * n + (1 - u) * h,), (x, h, n, u)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, n, u = saved
        (dnew,) = dstate
        candidate, update = apart(params, 2)
        dcandidate, dx_n, dgated = candidate.backward(x, u * h, dnew * u * tanh_slope(n))
        du = dnew * (n - h) + dgated * h
        dupdate, dx_u, dh_u = update.backward(x, h, du * sigmoid_slope(u))
        dh = dnew * (1 - u) + dgated * u + dh_u
        return stacked(dcandidate, dupdate), dx_n + dx_u, (dh,)


class GRU(Cell):
    """Gates "rzn", reset after the product; W (3H, I), U (3H, H), b (3H,), d (H,).

    r = sigmoid(W.r x + U.r h + b.r); z = sigmoid(W.z x + U.z h + b.z)
    n = tanh(W.n x + b.n + r * (U.n h + d)); h' = (1 - z) * n + z * h
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        (h,) = state
        reset, update, candidate = apart(params, 3)
        r = sigmoid(reset.apply(x, h))
        z = sigmoid(update.apply(x, h))
        recalled = h @ candidate.U.T + params["d"]
        n = np.tanh(x @ candidate.W.T + candidate.b + r * recalled)
        return ((1 - z) * n + z * h,), (x, h, r, z, n, recalled)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, r, z, n, recalled = saved
        (dnew,) = dstate
        reset, update, candidate = apart(params, 3)
        dn_pre = dnew * (1 - z) * tanh_slope(n)
        drecalled = dn_pre * r
        dcandidate = Gate(dn_pre.T @ x, drecalled.T @ h, dn_pre.sum(axis=0))
        dr_pre = dn_pre * recalled * sigmoid_slope(r)
        dz_pre = dnew * (h - n) * sigmoid_slope(z)
        dreset, dx_r, dh_r = reset.backward(x, h, dr_pre)
        dupdate, dx_z, dh_z = update.backward(x, h, dz_pre)
        dx = dn_pre @ candidate.W + dx_r + dx_z
        dh = dnew * z + drecalled @ candidate.U + dh_r + dh_z
        dparams = stacked(dreset, dupdate, dcandidate)
        return {**dparams, "d": drecalled.sum(axis=0)}, dx, (dh,)


class GRUResetBefore(Cell):
    """Gates "rzn", reset before the product; W (3H, I), U (3H, H), b (3H,).

    r = sigmoid(W.r x + U.r h + b.r); z = sigmoid(W.z x + U.z h + b.z)
    n = tanh(W.n x + U.n (r * h) + b.n); h' = (1 - z) * n + z * h
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        (h,) = state
        reset, update, candidate = apart(params, 3)
        r = sigmoid(reset.apply(x, h))
        z = sigmoid(update.apply(x, h))
        n = np.tanh(candidate.apply(x, r * h))
        return ((1 - z) * n + z * h,), (x, h, r, z, n)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, r, z, n = saved
        (dnew,) = dstate
        reset, update, candidate = apart(params, 3)
        dn_pre = dnew * (1 - z) * tanh_slope(n)
        dcandidate, dx_n, dgated = candidate.backward(x, r * h, dn_pre)
        dupdate, dx_z, dh_z = update.backward(x, h, dnew * (h - n) * sigmoid_slope(z))
        dreset, dx_r, dh_r = reset.backward(x, h, dgated * h * sigmoid_slope(r))
        dh = dnew * z + dgated * r + dh_z + dh_r
        return stacked(dreset, dupdate, dcandidate), dx_n + dx_z + dx_r, (dh,)


class GRUGateThroughReset(Cell):
    """Gates "run", the update gate reads the reset state; W (3H, I), U (3H, H), b (3H,).

    r = sigmoid(W.r x + U.r h + b.r); u = sigmoid(W.u x + U.u (r * h) + b.u)
    n = tanh(W.n x + U.n (r * h) + b.n); h' = (1 - u) * h + u * n
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        (h,) = state
        reset, update, candidate = apart(params, 3)
        r = sigmoid(reset.apply(x, h))
        u = sigmoid(update.apply(x, r * h))
        n = np.tanh(candidate.apply(x, r * h))
        return ((1 - u) * h + u * n,), (x, h, r, u, n)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, r, u, n = saved
        (dnew,) = dstate
        reset, update, candidate = apart(params, 3)
        dn_pre = dnew * u * tanh_slope(n)
        du_pre = dnew * (n - h) * sigmoid_slope(u)
        dcandidate, dx_n, dgated_n = candidate.backward(x, r * h, dn_pre)
        dupdate, dx_u, dgated_u = update.backward(x, r * h, du_pre)
        dgated = dgated_n + dgated_u
        dreset, dx_r, dh_r = reset.backward(x, h, dgated * h * sigmoid_slope(r))
        dh = dnew * (1 - u) + dgated * r + dh_r
        return stacked(dreset, dupdate, dcandidate), dx_n + dx_u + dx_r, (dh,)


# --- LSTMs ------------------------------------------------------------------------------


class LSTM(Cell):
    """Gates "ifgo"; W (4H, I), U (4H, H), b (4H,); state (h, c).

    i, f, o = sigmoid(W.k x + U.k h + b.k); g = tanh(W.g x + U.g h + b.g)
    c' = f * c + i * g; h' = o * tanh(c')
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        h, c = state
        i_pre, f_pre, g_pre, o_pre = np.split(together(params).apply(x, h), 4, axis=1)
        i, f, g, o = sigmoid(i_pre), sigmoid(f_pre), np.tanh(g_pre), sigmoid(o_pre)
        new_c = f * c + i * g
        t = np.tanh(new_c)
        return (o * t, new_c), (x, h, c, i, f, g, o, t)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, c, i, f, g, o, t = saved
        dnew_h, dnew_c = dstate
        dnew_c = dnew_c + dnew_h * o * tanh_slope(t)
        dpre = [
            dnew_c * g * sigmoid_slope(i),
            dnew_c * c * sigmoid_slope(f),
            dnew_c * i * tanh_slope(g),
            dnew_h * t * sigmoid_slope(o),
        ]
        dgate, dx, dh = together(params).backward(x, h, np.hstack(dpre))
        return dgate._asdict(), dx, (dh, dnew_c * f)


class LSTM1997(Cell):
    """Gates "igo", nothing is forgotten; W (3H, I), U (3H, H), b (3H,); state (h, c).

    i, o = sigmoid(W.k x + U.k h + b.k); g = tanh(W.g x + U.g h + b.g)
    c' = c + i * g; h' = o * tanh(c')
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        h, c = state
        i_pre, g_pre, o_pre = np.split(together(params).apply(x, h), 3, axis=1)
        i, g, o = sigmoid(i_pre), np.tanh(g_pre), sigmoid(o_pre)
        new_c = c + i * g
        t = np.tanh(new_c)
        return (o * t, new_c), (x, h, i, g, o, t)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, i, g, o, t = saved
        dnew_h, dnew_c = dstate
        dnew_c = dnew_c + dnew_h * o * tanh_slope(t)
        dpre = [
            dnew_c * g * sigmoid_slope(i),
            dnew_c * i * tanh_slope(g),
            dnew_h * t * sigmoid_slope(o),
        ]
        dgate, dx, dh = together(params).backward(x, h, np.hstack(dpre))
        return dgate._asdict(), dx, (dh, dnew_c)


class CoupledLSTM(Cell):
    """Gates "fgo", what is forgotten is replaced; W (3H, I), U (3H, H), b (3H,); state (h, c).

    f, o = sigmoid(W.k x + U.k h + b.k); g = tanh(W.g x + U.g h + b.g)
    c' = f * c + (1 - f) * g; h' = o * tanh(c')
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        h, c = state
        f_pre, g_pre, o_pre = np.split(together(params).apply(x, h), 3, axis=1)
        f, g, o = sigmoid(f_pre), np.tanh(g_pre), sigmoid(o_pre)
        new_c = f * c + (1 - f) * g
        t = np.tanh(new_c)
        return (o * t, new_c), (x, h, c, f, g, o, t)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, c, f, g, o, t = saved
        dnew_h, dnew_c = dstate
        dnew_c = dnew_c + dnew_h * o * tanh_slope(t)
        dpre = [
            dnew_c * (c - g) * sigmoid_slope(f),
            dnew_c * (1 - f) * tanh_slope(g),
            dnew_h * t * sigmoid_slope(o),
        ]
        dgate, dx, dh = together(params).backward(x, h, np.hstack(dpre))
        return dgate._asdict(), dx, (dh, dnew_c * f)


class PeepholeLSTM(Cell):
    """Gates "ifgo" with p (3H,) of gates "ifo"; W (4H, I), U (4H, H), b (4H,); state (h, c).

    i, f = sigmoid(W.k x + U.k h + b.k + p.k * c); g = tanh(W.g x + U.g h + b.g)
    c' = f * c + i * g; o = sigmoid(W.o x + U.o h + b.o + p.o * c'); h' = o * tanh(c')
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        h, c = state
        i_pre, f_pre, g_pre, o_pre = np.split(together(params).apply(x, h), 4, axis=1)
        p_i, p_f, p_o = np.split(params["p"], 3)
        i, f, g = sigmoid(i_pre + p_i * c), sigmoid(f_pre + p_f * c), np.tanh(g_pre)
        new_c = f * c + i * g
        o = sigmoid(o_pre + p_o * new_c)
        t = np.tanh(new_c)
        return (o * t, new_c), (x, h, c, new_c, i, f, g, o, t)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, c, new_c, i, f, g, o, t = saved
        p_i, p_f, p_o = np.split(params["p"], 3)
        dnew_h, dnew_c = dstate
        do_pre = dnew_h * t * sigmoid_slope(o)
        dnew_c = dnew_c + dnew_h * o * tanh_slope(t) + do_pre * p_o
        di_pre = dnew_c * g * sigmoid_slope(i)
        df_pre = dnew_c * c * sigmoid_slope(f)
        dg_pre = dnew_c * i * tanh_slope(g)
        dpre = np.hstack([di_pre, df_pre, dg_pre, do_pre])
        dgate, dx, dh = together(params).backward(x, h, dpre)
        dp = np.hstack([di_pre * c, df_pre * c, do_pre * new_c]).sum(axis=0)
        dc = dnew_c * f + di_pre * p_i + df_pre * p_f
        return {**dgate._asdict(), "p": dp}, dx, (dh, dc)


class LayerNormLSTM(Cell):
    """Gates "ifgo" for W (4H, I), U (4H, H); "ifgoc" for gains s (5H,), biases b (5H,).

    gate k = act(norm(W.k x + U.k h) * s.k + b.k), norm over the H units of that gate
    c' = f * c + i * g; h' = o * tanh(norm(c') * s.c + b.c); the c' kept is not normalised
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        h, c = state
        batch, size = h.shape
        s, b = params["s"].reshape(5, size), params["b"].reshape(5, size)
        v = x @ params["W"].T + h @ params["U"].T
        gates_norm = normalise(v.reshape(batch, 4, size))
        i_pre, f_pre, g_pre, o_pre = (gates_norm.value * s[:4] + b[:4]).swapaxes(0, 1)
        i, f, g, o = sigmoid(i_pre), sigmoid(f_pre), np.tanh(g_pre), sigmoid(o_pre)
        new_c = f * c + i * g
        c_norm = normalise(new_c)
        t = np.tanh(c_norm.value * s[4] + b[4])
        return (o * t, new_c), (x, h, c, i, f, g, o, t, gates_norm, c_norm)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, c, i, f, g, o, t, gates_norm, c_norm = saved
        batch, size = h.shape
        s = params["s"].reshape(5, size)
        dnew_h, dnew_c = dstate
        dt_pre = dnew_h * o * tanh_slope(t)
        dnew_c = dnew_c + c_norm.backward(dt_pre * s[4])
        dpre = [
            dnew_c * g * sigmoid_slope(i),
            dnew_c * c * sigmoid_slope(f),
            dnew_c * i * tanh_slope(g),
            dnew_h * t * sigmoid_slope(o),
        ]
        dgates = np.stack(dpre, axis=1)  # (batch, 4, H)
        dv = gates_norm.backward(dgates * s[:4]).reshape(batch, 4 * size)
        ds = np.vstack(
            [(dgates * gates_norm.value).sum(axis=0), (dt_pre * c_norm.value).sum(axis=0)]
        )
        db = np.vstack([dgates.sum(axis=0), dt_pre.sum(axis=0)])
        dparams = {"W": dv.T @ x, "U": dv.T @ h, "s": ds.ravel(), "b": db.ravel()}
        return dparams, dv @ params["W"], (dv @ params["U"], dnew_c * f)


# --- without a recurrent product --------------------------------------------------------


class QRNN(Cell):
    """Gates "zfo"; W (3H, I), V (3H, I), b (3H,); state (h, c, p), p (batch, I) the x before.

    z = tanh(W.z x + V.z p + b.z); f, o = sigmoid(W.k x + V.k p + b.k)
    c' = f * c + (1 - f) * z; h' = o * c'; p' = x
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        _, c, p = state
        z_pre, f_pre, o_pre = np.split(self.gate(params).apply(x, p), 3, axis=1)
        z, f, o = np.tanh(z_pre), sigmoid(f_pre), sigmoid(o_pre)
        new_c = f * c + (1 - f) * z
        return (o * new_c, new_c, x), (x, c, p, z, f, o, new_c)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, c, p, z, f, o, new_c = saved
        dnew_h, dnew_c, dnew_p = dstate
        dnew_c = dnew_c + dnew_h * o
        dpre = [
            dnew_c * (1 - f) * tanh_slope(z),
            dnew_c * (c - z) * sigmoid_slope(f),
            dnew_h * new_c * sigmoid_slope(o),
        ]
        dgate, dx, dp = self.gate(params).backward(x, p, np.hstack(dpre))
        grads = {"W": dgate.W, "V": dgate.U, "b": dgate.b}
        return grads, dx + dnew_p, (np.zeros(dnew_h.shape), dnew_c * f, dp)

    @staticmethod
    def gate(params: Params) -> Gate:
        """V p stands where other cells have U h."""
        return Gate(params["W"], params["V"], params["b"])


class SRU(Cell):
    """Gates "gfrs" for W (4H, I); "fr" for v (2H,), b (2H,); state (h, c).

    f, r = sigmoid(W.k x + v.k * c + b.k); c' = f * c + (1 - f) * (W.g x)
    h' = r * c' + (1 - r) * (W.s x)
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        _, c = state
        g, f_pre, r_pre, s = np.split(x @ params["W"].T, 4, axis=1)
        (v_f, v_r), (b_f, b_r) = np.split(params["v"], 2), np.split(params["b"], 2)
        f, r = sigmoid(f_pre + v_f * c + b_f), sigmoid(r_pre + v_r * c + b_r)
        new_c = f * c + (1 - f) * g
        return (r * new_c + (1 - r) * s, new_c), (x, c, g, f, r, s, new_c)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, c, g, f, r, s, new_c = saved
        v_f, v_r = np.split(params["v"], 2)
        dnew_h, dnew_c = dstate
        dnew_c = dnew_c + dnew_h * r
        dr_pre = dnew_h * (new_c - s) * sigmoid_slope(r)
        df_pre = dnew_c * (c - g) * sigmoid_slope(f)
        dproducts = np.hstack([dnew_c * (1 - f), df_pre, dr_pre, dnew_h * (1 - r)])
        dgates = np.hstack([df_pre, dr_pre])
        grads = {
            "W": dproducts.T @ x,
            "v": (dgates * np.hstack([c, c])).sum(axis=0),
            "b": dgates.sum(axis=0),
        }
        dc = dnew_c * f + df_pre * v_f + dr_pre * v_r
        return grads, dproducts @ params["W"], (np.zeros(dnew_h.shape), dc)


class MinGRU(Cell):
    """Gates "zn"; W (2H, I), b (2H,).

    z = sigmoid(W.z x + b.z); n = W.n x + b.n; h' = (1 - z) * h + z * n
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        (h,) = state
        z_pre, n = np.split(x @ params["W"].T + params["b"], 2, axis=1)
        z = sigmoid(z_pre)
        return ((1 - z) * h + z * n,), (x, h, z, n)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, z, n = saved
        (dnew,) = dstate
        dpre = np.hstack([dnew * (n - h) * sigmoid_slope(z), dnew * z])
        grads = {"W": dpre.T @ x, "b": dpre.sum(axis=0)}
        return grads, dpre @ params["W"], (dnew * (1 - z),)


class MinLSTM(Cell):
    """Gates "fin"; W (3H, I), b (3H,).

    f, i = sigmoid(W.k x + b.k); n = W.n x + b.n; h' = (f * h + i * n) / (f + i)
    """

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        (h,) = state
        f_pre, i_pre, n = np.split(x @ params["W"].T + params["b"], 3, axis=1)
        f, i = sigmoid(f_pre), sigmoid(i_pre)
        new = (f * h + i * n) / (f + i)
        return (new,), (x, h, f, i, n, new)

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        x, h, f, i, n, new = saved
        dsum = dstate[0] / (f + i)
        dpre = np.hstack(
            [
                dsum * (h - new) * sigmoid_slope(f),
                dsum * (n - new) * sigmoid_slope(i),
                dsum * i,
            ]
        )
        grads = {"W": dpre.T @ x, "b": dpre.sum(axis=0)}
        return grads, dpre @ params["W"], (dsum * f,)


# --- wrappers ---------------------------------------------------------------------------


def joined(states: Sequence[State]) -> State:
    """States of one row each, as the state of the whole batch."""
    return tuple(np.concatenate(part) for part in zip(*states, strict=True))


@dataclass(frozen=True)
class RecurrentDropout(Cell):
    """Every product U v becomes U (m * v), with one mask m (batch, H) for all time.

    U (m * v) = (U diag(m)) v: each row of the batch runs the cell with a U of its own, so the
    cells need not know of masks. Goes inside Zoneout, with which it commutes.
    """

    cell: Cell
    mask: Array | None = None  # set by `at`

    def at(self, time: int, masks: Masks) -> Cell:
        assert masks.recurrent is not None, "RecurrentDropout needs Masks(recurrent=...)"
        assert self.cell.at(time, masks) is self.cell, "RecurrentDropout wraps a plain cell"
        return RecurrentDropout(self.cell, masks.recurrent)

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        assert self.mask is not None
        assert self.mask.shape == state[0].shape
        news, saves = [], []
        for row, mask in enumerate(self.mask):
            row_state = tuple(part[[row]] for part in state)
            new, saved = self.cell.step(self.dropped(params, mask), x[[row]], row_state)
            news.append(new)
            saves.append(saved)
        return joined(news), saves

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        assert self.mask is not None
        dparams = {name: np.zeros(value.shape) for name, value in params.items()}
        dxs, dolds = [], []
        for row, (mask, row_saved) in enumerate(zip(self.mask, saved, strict=True)):
            dnew = tuple(part[[row]] for part in dstate)
            drow, dx, dold = self.cell.step_backward(self.dropped(params, mask), row_saved, dnew)
            for name, value in drow.items():
                dparams[name] += value * mask if name == "U" else value
            dxs.append(dx)
            dolds.append(dold)
        return dparams, np.concatenate(dxs), joined(dolds)

    @staticmethod
    def dropped(params: Params, mask: Array) -> Params:
        """The parameters with U diag(mask) for U."""
        return {**params, "U": params["U"] * mask}


@dataclass(frozen=True)
class Zoneout(Cell):
    """s' = m * new + (1 - m) * old for each state part, new being the cell's; masks change
    with time. The output is the mixed first part."""

    cell: Cell
    masks: State = ()  # set by `at`, one (batch, H) per state part

    def at(self, time: int, masks: Masks) -> Cell:
        assert masks.zoneout is not None, "Zoneout needs Masks(zoneout=...)"
        assert all(m.ndim == 3 for m in masks.zoneout), "zoneout masks are (time, batch, H)"
        return Zoneout(self.cell.at(time, masks), tuple(m[time] for m in masks.zoneout))

    def step(self, params: Params, x: Array, state: State) -> tuple[State, Saved]:
        news, saved = self.cell.step(params, x, state)
        triples = zip(self.masks, news, state, strict=True)
        return tuple(m * new + (1 - m) * old for m, new, old in triples), saved

    def step_backward(self, params: Params, saved: Saved, dstate: State) -> Gradients:
        dnews = tuple(m * d for m, d in zip(self.masks, dstate, strict=True))
        dparams, dx, dolds = self.cell.step_backward(params, saved, dnews)
        triples = zip(self.masks, dolds, dstate, strict=True)
        return dparams, dx, tuple(dold + (1 - m) * d for m, dold, d in triples)


@dataclass(frozen=True)
class Residual:
    """y = x + h' while the state fed back stays h' itself; input and H are equal. Outermost."""

    cell: Reference

    def forward(
        self,
        params: Params,
        x: Array,
        state: State,
        masks: Masks | None = None,
        lengths: Sequence[int] | None = None,
    ) -> tuple[Array, State, Tape]:
        y, final, tape = self.cell.forward(params, x, state, masks, lengths)
        assert x.shape == y.shape, "Residual needs an input as wide as the state"
        return np.where(tape.alive, x + y, 0.0), final, tape

    def backward(self, params: Params, tape: Tape, dy: Array, dfinal: State) -> Gradients:
        dparams, dx, dstate = self.cell.backward(params, tape, dy, dfinal)
        return dparams, dx + np.where(tape.alive, dy, 0.0), dstate


REFERENCES: dict[str, Callable[..., Reference]] = {
    "SimpleRNN": SimpleRNN,
    "RecurrentPerceptron": recurrent_perceptron,
    "LeakyRNN": LeakyRNN,
    "MinimalGated": MinimalGated,
    "MGU": MGU,
    "GRU": GRU,
    "GRUResetBefore": GRUResetBefore,
    "GRUGateThroughReset": GRUGateThroughReset,
    "LSTM": LSTM,
    "LSTM1997": LSTM1997,
    "CoupledLSTM": CoupledLSTM,
    "PeepholeLSTM": PeepholeLSTM,
    "LayerNormLSTM": LayerNormLSTM,
    "QRNN": QRNN,
    "SRU": SRU,
    "MinGRU": MinGRU,
    "MinLSTM": MinLSTM,
    "RecurrentDropout": RecurrentDropout,
    "Zoneout": Zoneout,
    "Residual": Residual,
}
