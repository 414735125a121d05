"""A learning rule as a program: every column replays the steps of what it has seen.

A column that has not seen an example reads it as zeros, and what would change the state
nevertheless is multiplied by `seen`, 0 or 1. Parts of the state that need no replay get
none:

    clocks   depend on no data, as a count of steps does: they are constants in every
             step, and known at every position
    sums     grow by something that depends on the example only, as XᵀX does: it is
             computed once per example, averaged by attention and multiplied by n

Entries of an array that are always equal, as those of a symmetric matrix, share a row.
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Int

from algoscope.construction.language.arithmetic import Operand, is_known
from algoscope.construction.language.expressions import (
    Expression,
    Products,
    Scene,
    collected,
    fixed,
)
from algoscope.construction.language.jaxpr import JaxprRunner
from algoscope.construction.language.program import Program
from algoscope.construction.language.recorder import Recorder, spread
from algoscope.construction.language.rules import LearningRule, TracedRule
from algoscope.construction.language.timesteps import Labels
from algoscope.construction.language.values import Register, Value, constant
from algoscope.foundation.validation import InvalidValueError, require_at_least


def program_of(
    rule: LearningRule, dim: int, num_examples: int, digits: int = 53
) -> Program:
    """Return the program that runs a rule, for numbers of so many binary digits.

    Example:
        >>> sgd = LearningRule(
        ...     step=lambda w, x, y: w + 0.1 * x * (y - w @ x),
        ...     predict=lambda w, x: w @ x,
        ...     init=np.zeros,
        ... )
        >>> program_of(sgd, dim=2, num_examples=3).events[-1].out
        prediction
    """
    require_at_least("dim", dim, 1)
    require_at_least("num_examples", num_examples, 1)
    with jax.enable_x64(True):
        traced = TracedRule.of(rule, dim)
        classes: dict[int, np.ndarray] = {}
        while True:
            replay = Replay(traced, Program(dim, num_examples), digits, classes)
            program = replay.write()
            if not replay.split:
                return program
            # Entries that were one at first were not later: keep them apart.
            classes |= replay.split


@dataclass
class _Leaf:
    """One array of the state: constants, and rows of a register if it has varied."""

    offset: np.ndarray
    base: Value | None = None
    place: Int[np.ndarray, " size"] | None = None

    def operand(self, scene: Scene = "replay") -> Operand:
        """Return the array as it is now."""
        if self.base is None or self.place is None:
            return self.offset
        linear = spread(self.base, self.place) + constant(self.offset.ravel())
        return Expression(self.offset.shape, linear, scene)


class Replay:
    """Writes the program of a traced rule."""

    def __init__(
        self,
        traced: TracedRule,
        program: Program,
        digits: int,
        classes: dict[int, np.ndarray],
    ):
        self.traced, self.program, self.digits = traced, program, digits
        self.classes = classes  # entries of the state to hold in rows of their own
        self.split: dict[int, np.ndarray] = {}
        self.recorder = Recorder(program, digits)
        self.runner = JaxprRunner(self.recorder, "step")
        self.leaves = [_Leaf(np.asarray(start)) for start in traced.start]
        self.clocks = traced.clocks
        self.ticks: list[list[Operand]] = [
            list(traced.start)
        ]  # the state after each step, for clocks

    def write(self) -> Program:
        """Return the program."""
        sums = self._sums()
        self.recorder.begin(0)
        before = [leaf.operand() for leaf in self.leaves]
        if sums:
            grown = self._step(before, sums)
            for index in sums:
                self._accumulate(index, grown[index])
        replayed = set(range(len(self.leaves))) - sums - self.clocks
        for k in range(self.program.num_examples):
            self.recorder.begin(k)
            self._tick()
            if replayed:
                self._replay(replayed)
        return self._predict()

    def _step(self, state: list[Operand], needed: set[int]) -> list[Operand]:
        flags = [index in needed for index in range(len(state))]
        return self.runner.run(self.traced.step, [*state, *self.recorder.home], flags)

    def _tick(self) -> None:
        """Advance the clocks by one step."""
        state: list[Operand] = list(self.ticks[-1])
        after = self._step(state, self.clocks) if self.clocks else state
        self.ticks.append(
            [after[k] if k in self.clocks else s for k, s in enumerate(state)]
        )

    def _replay(self, replayed: set[int]) -> None:
        """Write the step of one example."""
        clock = self.ticks[self.recorder.step]
        state = [
            clock[k] if k in self.clocks else leaf.operand()
            for k, leaf in enumerate(self.leaves)
        ]
        after = self._step(state, replayed)
        changes = {k: self._gated(self._change(k, after[k])) for k in replayed}
        for k in sorted(replayed):
            others = [changes[j] for j in replayed if j > k]
            shared = any(
                _registers_of(self.leaves[j]) & _registers_of(self.leaves[k])
                for j in replayed - {k}
            )
            used = {r for each in others for v in each.values for r in v.terms}
            in_place = not shared and not used & _registers_of(self.leaves[k])
            self._update(k, changes[k], in_place=in_place)

    def _change(self, index: int, after: Operand) -> Expression:
        """Return by how much a step changes one array, in the columns of the replay."""
        arithmetic = self.runner.arithmetic
        before = self.leaves[index].operand()
        if is_known(after) and is_known(before):
            return fixed(after - before, "replay")
        change = arithmetic.add(after, before, -1.0)
        return self.recorder.brought(change, "replay", lazily=True)

    def _gated(self, change: Expression) -> Expression:
        """Return a change that is zero in columns that have not seen the example."""
        recorder, size = self.recorder, change.size
        whole = collected(change)
        stays = ~recorder.gone(change.linear)
        gated = Expression(change.shape, change.linear, "replay")
        if stays.any():
            rows = np.flatnonzero(stays)
            loose = change.linear.take(rows)
            # A constant times `seen` is linear; the rest are products.
            mix = np.eye(size)[:, rows]
            kept = np.where(stays, 0.0, 1.0)
            gated = gated.scaled(kept)
            fixed_rows = loose.is_constant
            if fixed_rows.any():
                constants = mix[:, fixed_rows] @ loose.constant[fixed_rows]
                gated.linear = gated.linear + constants[:, None] @ recorder.seen()
            vary = np.flatnonzero(~fixed_rows)
            if len(vary):
                seen = recorder.seen().repeat(len(vary))
                product = Products(loose.take(vary), seen, mix[:, vary])
                gated.products.append(product)
        loose_products = ~(recorder.gone(whole.p) | recorder.gone(whole.q))
        tight = np.flatnonzero(~loose_products)
        p, q = whole.p.take(tight), whole.q.take(tight)
        gated.products.append(Products(p, q, whole.mix[:, tight]))
        loose_rows = np.flatnonzero(loose_products)
        if len(loose_rows):
            p, q = whole.p.take(loose_rows), whole.q.take(loose_rows)
            if self._ready(q) < self._ready(p):
                p, q = q, p
            seen = recorder.seen().repeat(len(loose_rows))
            product = [Products(p, seen, np.eye(p.size))]
            zero = constant(np.zeros(p.size))
            early = Expression((p.size,), zero, "replay", product)
            p = recorder.settle(early, "gated")
            gated.products.append(Products(p, q, whole.mix[:, loose_rows]))
        return gated

    def _ready(self, value: Value) -> int:
        """Return the number of the last event that a value waits for."""
        numbers = {event.out: k for k, event in enumerate(self.program.events)}
        return max((numbers.get(r, -1) for r in value.terms), default=-1)

    def _update(self, index: int, change: Expression, *, in_place: bool) -> None:
        """Add a change to one array of the state."""
        leaf, name = self.leaves[index], self.traced.names[index]
        name += f"{'.' if name[-1].isdigit() else ''}{self.recorder.step + 1}"
        kept, place = self.recorder.distinct(change)
        if not len(kept):
            return
        if index in self.classes:
            pairs = list(zip(self.classes[index], place, strict=True))
            classes = list(dict.fromkeys(p for p in pairs if p[1] >= 0))
            kept = np.array([pairs.index(each) for each in classes])
            place = np.array([classes.index(p) if p[1] >= 0 else -1 for p in pairs])
        whole = collected(change)
        old = leaf.base
        if old is None or leaf.place is None:
            rows, into, before = kept, None, None
        else:
            # Entries stay one if they were one and change alike.
            pairs = list(zip(leaf.place.tolist(), place.tolist(), strict=True))
            classes = list(dict.fromkeys(pair for pair in pairs if max(pair) >= 0))
            in_place = (
                in_place
                and sorted(pair[0] for pair in classes) == list(range(old.size))
                and _is_whole(old)
            )
            if in_place:
                classes.sort()
            place = np.array([classes.index(p) if max(p) >= 0 else -1 for p in pairs])
            held = [pair[0] for pair in classes if pair[0] >= 0]
            if len(set(held)) < len(held):  # entries of one row change unalike
                self.split[index] = place
            rows = np.array([pairs.index(each) for each in classes])
            before = spread(old, leaf.place).take(rows)
            into = old if in_place else None
        plus = change.linear.take(rows)
        if not whole.p.size and before is not None:
            base = self.program.store(plus + before, name)  # a layer earlier
        else:
            if into is None and before is not None:
                plus = plus + before
            base = self.program.multiply(
                whole.p, whole.q, whole.mix[rows], plus=plus, into=into, name=name
            )
        if not _is_whole(base):
            base = self.program.store(base, name)
        self.recorder.observe()
        self.leaves[index] = _Leaf(leaf.offset, base, place)

    def _accumulate(self, index: int, grown: Operand) -> None:
        """Write a sum over all examples that a column has seen: n times their mean."""
        program, name = self.program, self.traced.names[index]
        before = self.leaves[index].offset
        change = self.runner.arithmetic.add(grown, before, -1.0)
        value = self.recorder.settle(change, f"each {name}")
        kept, place = self.recorder.distinct(Expression(change.shape, value, "home"))
        mean = program.read(value.take(kept), Labels(), f"mean {name}")
        counts = (np.arange(program.time) + 1) // 2
        others = program.position("n-1", counts[:, None] - 1.0)
        base = program.multiply(mean, others.repeat(mean.size), into=mean, name=name)
        self.recorder.observe()
        self.leaves[index] = _Leaf(before, base, place)

    def _sums(self) -> set[int]:
        """Return which arrays grow by something that depends on the example only."""
        trial = Replay.__new__(Replay)
        trial.recorder = Recorder(
            Program(self.program.dim, self.program.num_examples), self.digits
        )
        trial.runner, trial.traced = JaxprRunner(trial.recorder, "step"), self.traced
        rng, registers, state = np.random.default_rng(0), [], []
        for name, start in zip(self.traced.names, self.traced.start, strict=True):
            shape = (self.program.time, start.size)
            value = trial.recorder.program.position(name, rng.normal(size=shape))
            registers.append(next(iter(value.terms)))
            state.append(Expression(start.shape, value, "home"))
        for k in self.clocks:
            state[k] = self.traced.start[k]
        trial.recorder.observe()
        rest = set(range(len(state))) - self.clocks
        try:
            after = trial._step(state, rest)
        except InvalidValueError:
            return set()  # the replay will say what is wrong
        needs, found = {}, set()
        for k in rest:
            change = trial.runner.arithmetic.add(after[k], state[k], -1.0)
            sources = _sources(trial.recorder.program, change.values)
            needs[k] = {j for j, r in enumerate(registers) if r in sources}
            if not needs[k]:
                found.add(k)
        return {k for k in found if not any(k in needs[j] for j in rest - found)}

    def _predict(self) -> Program:
        """Write the prediction of every column."""
        program, recorder = self.program, self.recorder
        recorder.begin(program.num_examples)
        state = [leaf.operand("query") for leaf in self.leaves]
        seen = np.minimum((np.arange(program.time) + 1) // 2, program.num_examples)
        for k in self.clocks & self.traced.asked:
            values = np.stack([np.asarray(tick[k]).ravel() for tick in self.ticks])
            shape = np.shape(self.traced.start[k])
            value = program.position(self.traced.names[k], 1.0 * values[seen])
            state[k] = Expression(shape, value, "query")
        recorder.observe()
        runner = JaxprRunner(recorder, "predict")
        x = Expression((program.dim,), program.x, "query")
        found = runner.run(self.traced.predict, [*state, x])
        outputs = []
        for each in found:
            whole = (
                fixed(each, "query")
                if is_known(each)
                else runner.arithmetic.varying(each)
            )
            value = recorder.settle(whole, "prediction")
            outputs += [value[k] for k in range(value.size)]
        program.predict(*outputs)
        return program


def _sources(program: Program, values: list[Value]) -> set[Register]:
    """Return every register that values depend on, through all events."""
    needed = {register for value in values for register in value.terms}
    for event in reversed(program.events):
        if event.out in needed:
            norm = () if event.norm is None else (event.norm,)
            needed |= {r for v in (*event.inputs, *norm) for r in v.terms}
    return needed


def _registers_of(leaf: _Leaf) -> set[Register]:
    return set() if leaf.base is None else set(leaf.base.terms)


def _is_whole(value: Value) -> bool:
    """Return whether a value is a register, all of it and nothing else."""
    if len(value.terms) != 1 or value.constant.any():
        return False
    (matrix,) = value.terms.values()
    return np.array_equal(matrix, np.eye(value.size))
