"""Writing expressions into a program, with their values on a few datasets beside them.

The recorder runs every event that it writes on random datasets. An expression that is
analytic in the data and zero, or equal to another, on all of them is so everywhere. So
it finds without being told which entries of a matrix are symmetric, which are written
once, and what stays zero in columns that have not seen an example. Where a threshold is
involved this is not a proof, and only what follows from the form is used.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from algoscope.construction.language.expressions import (
    Expression,
    Products,
    Scene,
    collected,
    form_of,
)
from algoscope.construction.language.functions import lift, sharpness, tie
from algoscope.construction.language.interpreter import evaluate, run_event
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import PREVIOUS, Single
from algoscope.construction.language.values import (
    Divide,
    Multiply,
    Register,
    Value,
    constant,
    join,
)
from algoscope.model.tokens import example_tokens


class Recorder:
    """A program under construction, and the step that is being written.

    Example, x₁² + x₂² of a query:
        >>> recorder = Recorder(Program(dim=2, num_examples=1), digits=53)
        >>> x = Expression((2,), recorder.program.x, "query")
        >>> product = [Products(x.linear, x.linear, np.ones((1, 2)))]
        >>> recorder.settle(Expression((), constant(0.0), "query", product), "x·x")
        x·x
    """

    def __init__(self, program: Program, digits: int):
        """Start with what every column holds, on a few random datasets."""
        self.program = program
        self.sharpness, self.tie, self.lift = (
            sharpness(digits),
            tie(digits),
            lift(digits),
        )
        tokens = example_tokens(program.dim, program.num_examples, 4, seed=11)
        self.numbers = {program.token: tokens}
        self.rough: set[Register] = set()  # depend on a threshold
        self.absent: set[Register] = set()  # zero in columns without this example
        self.step = 0
        self._written = 0
        self._reads: dict[object, Value] = {}
        self._settled: dict[object, Value] = {}
        x = program.read(program.x, PREVIOUS, "x")
        self.home = (
            Expression((program.dim,), x, "home"),
            Expression((), program.y, "home"),
        )
        self.observe()

    def begin(self, step: int) -> None:
        """Start to write what the example with this number does."""
        self.step, self.absent, self._reads = step, set(), {}

    # What the program holds so far.

    def observe(self, *, rough: bool = False) -> None:
        """Run the events that were added since the last time."""
        for register, values in self.program.positions.items():
            if register not in self.numbers:
                shape = (len(self.numbers[self.program.token]), *values.shape)
                self.numbers[register] = np.broadcast_to(values, shape)
        for event in self.program.events[self._written :]:
            with np.errstate(all="ignore"):
                result = run_event(event, self.numbers, self.program.time)
                if event.into is not None:
                    result = result + self.numbers[event.into]
            self.numbers[event.out] = result
            norm = () if event.norm is None else (event.norm,)
            sources = {r for v in (*event.inputs, *norm) for r in v.terms}
            if rough or sources & self.rough or event.into in self.rough:
                self.rough.add(event.out)
            if event.into is None and self._stays_absent(event):
                self.absent.add(event.out)
        self._written = len(self.program.events)

    def _stays_absent(self, event: object) -> bool:
        if isinstance(event, Divide):
            return bool(self.formally_gone(event.value).all())
        if isinstance(event, Multiply):
            factors = self.formally_gone(event.p) | self.formally_gone(event.q)
            return bool(factors.all() and self.formally_gone(event.plus).all())
        return False

    def formally_gone(self, value: Value) -> Bool[np.ndarray, " size"]:
        """Return which components are zero there because of how they are written."""
        gone = value.constant == 0
        for register, matrix in value.terms.items():
            if register not in self.absent:
                gone = gone & ~matrix.any(axis=1)
        return gone

    def gone(self, value: Value) -> Bool[np.ndarray, " size"]:
        """Return which components are zero in columns without the example."""
        gone = self.formally_gone(value)
        if self.rough & value.terms.keys():
            return gone
        numbers = evaluate(value, self.numbers)
        largest = np.abs(numbers).max(axis=(0, 1))
        unseen = np.abs(numbers[:, : 2 * self.step + 1]).max(axis=(0, 1))
        return gone | (unseen <= 1e-12 * largest)  # never where numbers are not finite

    def numbers_of(self, expression: Expression) -> Float[np.ndarray, "points size"]:
        """Return the entries on the random datasets, where the scene is."""
        with np.errstate(all="ignore"):
            total = evaluate(expression.linear, self.numbers)
            for each in expression.products:
                p, q = evaluate(each.p, self.numbers), evaluate(each.q, self.numbers)
                total = total + (p * q) @ each.mix.T
        columns = {"home": slice(1, None, 2), "query": slice(0, None, 2)}
        where = columns.get(expression.scene, slice(None))
        return total[:, where].reshape(-1, expression.size)

    def distinct(
        self, expression: Expression
    ) -> tuple[Int[np.ndarray, " kept"], Int[np.ndarray, " size"]]:
        """Return the rows that differ from all before, and for each row which it is.

        A row that is zero is number −1.
        """
        numbers = self.numbers_of(expression)
        registers = {r for value in expression.values for r in value.terms}
        if registers & self.rough or not np.isfinite(numbers).all():
            forms = _as_rows(expression)
            tolerance = np.zeros(len(forms))
        else:
            forms = numbers.T
            tolerance = 1e-11 * np.sqrt(np.mean(forms**2, axis=1))
        kept: list[int] = []
        place = np.full(expression.size, -1)
        for row, form in enumerate(forms):
            if not form.any():
                continue
            near = np.abs(forms[kept] - form).max(axis=1, initial=0) <= tolerance[row]
            found = np.flatnonzero(near)
            place[row] = found[0] if len(found) else len(kept)
            if not len(found):
                kept.append(row)
        return np.array(kept, int), place

    # Events.

    def named(self, expression: Expression) -> str:
        """Return a name for the register of an expression."""
        number = str(self.step + 1) if expression.scene == "replay" else ""
        return expression.label + number

    def settle(self, expression: Expression, name: str = "") -> Value:
        """Return an expression as a linear form, its products written."""
        if not expression.products:
            return expression.linear
        whole = collected(expression)
        kept, place = self.distinct(expression)
        plus, mix = expression.linear.take(kept), whole.mix[kept]
        key = (*map(form_of, (whole.p, whole.q, plus)), mix.tobytes())
        if key not in self._settled:
            name = name or self.named(expression)
            self._settled[key] = self.program.multiply(
                whole.p, whole.q, mix, plus=plus, name=name
            )
            self.observe()
        out = self._settled[key]
        expression.origin = replace(expression)
        expression.linear, expression.products = spread(out, place), []
        return expression.linear

    # Scenes.

    def seen(self) -> Value:
        """Return 1 in columns that have seen the example of this step, else 0."""
        return self._read("seen", lambda: self.program.seen(self.step))

    def example(self) -> tuple[Value, Value]:
        """Return x and y of this step, zero in columns that have not seen them."""
        k = self.step
        at_x, at_y = Single(2 * k, later=True), Single(2 * k + 1)
        program = self.program
        x = self._read("x", lambda: program.read(program.x, at_x, f"x{k + 1}"))
        return x, self._read("y", lambda: program.read(program.y, at_y, f"y{k + 1}"))

    def flag(self, kind: str) -> Value:
        """Return 1 in the columns of queries or of labels, 0 in the others."""
        name = f"is {kind}"
        for register in self.program.positions:
            if register.name == name:
                return Value.of(register)
        odd = (np.arange(self.program.time) % 2.0)[:, None]
        value = self.program.position(name, odd if kind == "label" else 1 - odd)
        self.observe()
        return value

    def _read(self, key: object, write: Callable[[], Value]) -> Value:
        if key not in self._reads:
            self._reads[key] = write()
            self.absent |= self._reads[key].terms.keys()
            self.observe()
        return self._reads[key]

    def _carried(self, value: Value) -> Value:
        whole = Expression((value.size,), value, "home")
        return self.brought(whole, "replay").linear

    def brought(
        self, expression: Expression, scene: Scene, *, lazily: bool = False
    ) -> Expression:
        """Return an expression of the home column in the columns that replay it.

        Products are written at home and read, or `lazily` their factors are read.
        """
        shape = expression.shape
        if expression.scene == scene:
            return expression
        if expression.constants() is not None:
            return Expression(shape, expression.linear, scene)
        if (expression.scene, scene) != ("home", "replay"):
            raise ValueError(f"{expression.scene} cannot be read in {scene}")
        (x,) = self.home[0].linear.terms
        lazily = lazily and bool(expression.products)
        token = self.program.token
        terms = expression.linear.terms
        if not expression.products and terms.keys() <= {x, token}:
            value = constant(expression.linear.constant)
            if x in terms:
                value = value + terms[x] @ self.example()[0]
            if token in terms:
                value = value + terms[token][:, :1] @ self.example()[1]
            return Expression(shape, value, scene)
        if lazily:
            products = [
                Products(self._carried(e.p), self._carried(e.q), e.mix)
                for e in expression.products
            ]
            linear = self._carried(expression.linear)
            return Expression(shape, linear, scene, products)
        value = self.settle(expression)
        rows = Expression(shape, value, "home")
        kept, place = self.distinct(rows)
        source, at = value.take(kept), Single(2 * self.step + 1)
        name = f"{source!r}{self.step + 1}"
        read = self._read(form_of(source), lambda: self.program.read(source, at, name))
        return Expression(shape, spread(read, place), scene)


def spread(value: Value, place: Int[np.ndarray, " size"]) -> Value:
    """Return the components with these numbers, and zero for −1."""
    if (place >= 0).all():
        return value.take(place)
    return join([value, constant(0.0)]).take(np.where(place < 0, value.size, place))


def _as_rows(expression: Expression) -> Float[np.ndarray, "size forms"]:
    """Return every entry as the numbers that define it."""
    linear = expression.linear
    whole = collected(expression)
    return np.hstack([linear.constant[:, None], *linear.terms.values(), whole.mix])
