"""The exact meaning of a program: what every register holds, in NumPy and float64.

The interpreter runs a program event by event, for many datasets at once. It is what
compiled weights are calibrated on and tested against.
"""

import numpy as np
from jaxtyping import Float

from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import Timesteps
from algoscope.construction.language.values import (
    Attend,
    Event,
    Head,
    Multiply,
    Read,
    Register,
    Value,
)
from algoscope.foundation.validation import InvalidValueError

Tokens = Float[np.ndarray, "datasets time token"]
Columns = Float[np.ndarray, "datasets time size"]
State = dict[Register, Float[np.ndarray, "datasets time _"]]


def evaluate(value: Value, state: State) -> Columns:
    """Return Σ_r M_r h[r] + c in every column."""
    datasets, time, _ = next(iter(state.values())).shape
    total = np.broadcast_to(value.constant, (datasets, time, value.size))
    for register, matrix in value.terms.items():
        total = total + state[register] @ matrix.T
    return total


def interpret(program: Program, tokens: Tokens) -> State:
    """Return what each register of the program holds after it was written.

    A column that cannot see an example runs the algorithm on zeros, as a transformer
    does. There is no quotient by zero: it is NaN, whatever is divided, and so is what
    depends on it.
    """
    datasets, time, size = tokens.shape
    if size != program.dim + 1 or time > program.time:
        rule = f"hold up to {program.time} tokens of size {program.dim + 1}"
        raise InvalidValueError("tokens", rule, f"shape {tokens.shape}")
    state: State = {program.token: tokens.astype(np.float64)}
    for register, values in program.positions.items():
        state[register] = np.broadcast_to(
            values[:time], (datasets, time, values.shape[1])
        )
    for event in program.events:
        result = run_event(event, state, time)
        if event.into is not None:
            result = result + state[event.into]
        state[event.out] = result
    return state


def predictions(
    program: Program, tokens: Tokens
) -> Float[np.ndarray, "datasets queries"]:
    """Return the program's output at every x̃."""
    return evaluate(program.prediction, interpret(program, tokens))[:, ::2, 0]


def run_event(event: Event, state: State, time: int) -> Columns:
    """Return what one event computes, without what it is added to."""
    if isinstance(event, Read):
        return event.at.average(time) @ evaluate(event.source, state)
    if isinstance(event, Attend):
        read = [_softmax(head, event.at, state, time) for head in event.heads]
        return np.sum(read, axis=0)
    if isinstance(event, Multiply):
        products = evaluate(event.p, state) * evaluate(event.q, state)
        if event.norm is not None:
            length = np.linalg.norm(evaluate(event.norm, state), axis=-1, keepdims=True)
            products = _quotient(products, length**2)
        return products @ event.mix.T + evaluate(event.plus, state)
    length = np.linalg.norm(evaluate(event.norm, state), axis=-1, keepdims=True)
    return _quotient(evaluate(event.value, state), length)


def _quotient(above: Columns, below: Float[np.ndarray, "datasets time 1"]) -> Columns:
    safe = np.where(below == 0, 1, below)
    return np.where(below == 0, np.nan, above / safe)


def _softmax(head: Head, at: Timesteps, state: State, time: int) -> Columns:
    """Return Σ_j α_ij value_j, for α the softmax over K(i) and the imaginary zero."""
    query, key = evaluate(head.query, state), evaluate(head.key, state)
    inside = at.average(time) > 0
    scores = np.where(inside, query @ key.swapaxes(1, 2), -np.inf)
    top = np.maximum(scores.max(axis=-1, keepdims=True), 0)
    weights = np.exp(scores - top)
    weights = weights / (weights.sum(axis=-1, keepdims=True) + np.exp(-top))
    return weights @ evaluate(head.value, state)
