"""A program as an opened learner: exact states and exact effects, without any weights.

The state after a layer has the rows that the compiler allocates, filled by the
interpreter: each row holds what was written into it last. An edited state is run on
from there, event by event. So the same probing and patching that is asked about a
transformer can be asked about its program, where the answer is exact. Pads hold the
norm of a layer that divides, in units of N; other rows of the frame are 0 here.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.construction.compiler.compile import Arrangement
from algoscope.construction.language.interpreter import (
    State,
    evaluate,
    interpret,
    run_event,
)
from algoscope.construction.language.values import Register
from algoscope.ground_truth.labels import unique_names
from algoscope.model.opened import StateEdit, apply_edit, name_layers, name_tokens
from algoscope.model.tokens import encode_context
from algoscope.tasks.linear import LinearRegression
from algoscope.tasks.task import Task

Inputs = Float[Any, "batch examples dim"]
Answers = Float[Any, "batch examples"]


class ExactLearner:
    """Fulfils `OpenedLearner` with the interpreter.

    Example:
        >>> import algoscope as asc
        >>> from algoscope.construction import Construction
        >>> exact = ExactLearner(Construction(asc.ALGORITHMS["sgd"](), 2, 3).arrange())
        >>> isinstance(exact, asc.OpenedLearner), exact.num_layers
        (True, 6)
    """

    def __init__(self, arrangement: Arrangement, name: str = "program"):
        self.arrangement = arrangement
        self.program = arrangement.program
        self.name = name
        self.task: Task = LinearRegression(self.dim)

    @property
    def dim(self) -> int:
        """d: the number of coordinates of an input."""
        return self.program.dim

    @property
    def max_examples(self) -> int:
        """The most examples that fit before a query."""
        return self.program.num_examples

    @property
    def digest(self) -> str:
        """A text that differs between programs."""
        return f"{self.name}: {self.arrangement.listing}"

    @property
    def num_layers(self) -> int:
        """The depth L."""
        return self.arrangement.num_layers

    @property
    def hidden_size(self) -> int:
        """The number of rows."""
        return self.arrangement.hidden_size

    @property
    def layer_names(self) -> tuple[str, ...]:
        """The names of H⁽⁰⁾, …, H⁽ᴸ⁾."""
        return name_layers(self.num_layers)

    def token_names(self, num_examples: int) -> list[str]:
        """Return the names of the tokens of some examples and of the query."""
        return name_tokens(num_examples)

    @cached_property
    def writings(self) -> list[list[Register]]:
        """Which registers each layer writes, from 0, in the order of its phases."""
        spans = self.arrangement.allocation.spans
        ordered = sorted(spans, key=lambda register: spans[register][0])
        return [
            [r for r in ordered if (spans[r][0] + 2) // 2 == layer]
            for layer in range(self.num_layers + 1)
        ]

    def interpret(self, x: Inputs, y: Answers) -> State:
        """Return what every register holds."""
        x, y = (np.asarray(each, np.float64) for each in (x, y))
        return interpret(self.program, encode_context(x, y))

    def named(
        self, x: Inputs, y: Answers
    ) -> dict[str, Float[np.ndarray, "batch time _"]]:
        """Return what every quantity is, by the names of its labels."""
        state = self.interpret(x, y)
        names = unique_names(self.arrangement.allocation.rows)
        return {name: state[register] for register, name in names.items()}

    def rows(self, state: State) -> Float[np.ndarray, "batch depth time hidden"]:
        """Return the state of the rows after every layer."""
        batch, time, _ = state[self.program.token].shape
        hidden = np.zeros((batch, self.num_layers + 1, time, self.hidden_size))
        for layer, written in enumerate(self.writings):
            if layer:
                hidden[:, layer] = hidden[:, layer - 1]
            for register in written:
                rows = self.arrangement.allocation.rows[register]
                hidden[:, layer][..., rows] = state[register]
            self._write_pads(hidden[:, layer], layer, state)
        return hidden

    def _write_pads(
        self, h: Float[np.ndarray, "batch time hidden"], layer: int, state: State
    ) -> None:
        """Set the pads to what the layer divides by, and to 0 after others."""
        pads = self.arrangement.allocation.frame.pads
        h[..., [row for pair in pads for row in pair]] = 0
        for event in self.arrangement.schedule.events(layer - 1):
            if event.norm is not None:
                norm = evaluate(event.norm, state)
                for k in range(event.norm.size):
                    h[..., pads[k][0]] = norm[..., k]
                    h[..., pads[k][1]] = -norm[..., k]

    def hidden_states(
        self, x: Inputs, y: Answers, /
    ) -> Float[np.ndarray, "batch depth time hidden"]:
        """Return H⁽⁰⁾, …, H⁽ᴸ⁾ of every dataset, at the tokens up to its last x."""
        return self.rows(self.interpret(x, y))

    def predict_edited(
        self, x: Inputs, y: Answers, layer: int, edit: StateEdit, /
    ) -> Float[np.ndarray, "batch examples"]:
        """Return the prediction at every x when H⁽ˡ⁾ is replaced by edit(H⁽ˡ⁾)."""
        state = self.interpret(x, y)
        hidden = np.asarray(apply_edit(_in_numpy(edit), self.rows(state)[:, layer]))
        allocation = self.arrangement.allocation
        for register, rows in allocation.live(layer - 1).items():
            state[register] = hidden[..., rows]
        for event in self.program.events:
            if self.arrangement.schedule.layers.get(event, -1) < layer:
                continue
            result = run_event(event, state, hidden.shape[1])
            if event.into is not None:
                result = result + state[event.into]
            state[event.out] = result
        return evaluate(self.program.prediction, state)[:, ::2, 0]


def _in_numpy(edit: StateEdit) -> StateEdit:
    """Return an edit whose arrays are NumPy arrays."""
    fields = getattr(edit, "__dataclass_fields__", {})
    changes = {name: np.asarray(getattr(edit, name)) for name in fields}
    return replace(edit, **changes) if changes else edit  # pyright: ignore
