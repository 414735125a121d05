"""A reader of printed formulas: it computes them, knowing nothing but their text.

A vector is an array whose last axis has its components, a matrix has two such axes and
the flag `is_matrix`. Leading axes are datasets and tokens, and broadcast.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from algoscope.construction.language.formulas import distinct_names, formula
from algoscope.construction.language.interpreter import State, interpret
from algoscope.construction.language.notation import Notation
from algoscope.construction.language.program import Program
from algoscope.construction.language.values import Event

NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?|nan|inf")
DIGITS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
PLACES = (
    (r" one token before$", lambda m, t: np.eye(t, k=-1)),
    (r" (\d+) tokens before$", lambda m, t: np.eye(t, k=-int(m[1]))),
    (r" over the labels$", lambda m, t: _labels(t)),
    (r" at ([xy][₀-₉]+)( for later tokens)?$", lambda m, t: _single(m, t)),
    (r" \(((?:query|[xy][₀-₉]+) takes it from .*)\)$", lambda m, t: _sets(m, t)),
)


@dataclass(frozen=True)
class Read:
    """Something that was read: a vector, or a matrix."""

    array: np.ndarray
    is_matrix: bool = False

    @property
    def flat(self) -> np.ndarray:
        if not self.is_matrix:
            return self.array
        return self.array.reshape(*self.array.shape[:-2], -1)


def _named_states(
    program: Program, state: State, notation: Notation
) -> Iterator[tuple[Event, dict[str, np.ndarray]]]:
    """Return every event, with what the names in its formula mean at that moment."""
    token, prefix = state[program.token], notation.names.get(program.token, "")
    named = {f"{prefix}y": token[..., :1], f"{prefix}x": token[..., 1:]}
    read = {
        register
        for event in program.events
        for value in (*event.inputs, *(() if event.norm is None else (event.norm,)))
        for register in value.terms
    } | {event.into for event in program.events}
    for register in program.positions:
        if register in read:
            named[notation.name(register)] = state[register]
    for event in program.events:
        yield event, named
        named[notation.name(event.out)] = state[event.out]


def compute(text: str, named: Mapping[str, np.ndarray], time: int) -> np.ndarray:
    """Return what a formula says, from arrays [datasets, time, size] by name."""
    average = np.eye(time)
    for pattern, make in PLACES:
        found = re.search(pattern, text)
        if found:
            text, average = text[: found.start()], make(found, time)
    reader = _Reader(text, named, average)
    value = reader.sum().flat
    assert reader.rest == "", f"{reader.rest!r} is left of {text!r}"
    if "softmax(" in text:
        return value
    value = np.broadcast_to(value, (*_batch(named), value.shape[-1]))
    return average @ value


def _batch(named: Mapping[str, np.ndarray]) -> tuple[int, ...]:
    return next(iter(named.values())).shape[:2]


def _token(name: str, time: int) -> int:
    if name == "query":
        return time - 1
    return 2 * (int(name[1:].translate(DIGITS)) - 1) + (name[0] == "y")


def _labels(time: int) -> np.ndarray:
    odd = np.tril(np.ones((time, time))) * (np.arange(time) % 2)
    return odd / np.maximum(odd.sum(axis=1, keepdims=True), 1)


def _single(found: re.Match[str], time: int) -> np.ndarray:
    matrix, token = np.zeros((time, time)), _token(found[1], time)
    if token < time:
        matrix[token + bool(found[2]) :, token] = 1
    return matrix


def _sets(found: re.Match[str], time: int) -> np.ndarray:
    matrix = np.eye(time)
    for each in found[1].split("; "):
        target, _, sources = each.partition(" takes it from ")
        row = np.zeros(time)
        for source in sources.split() if sources != "nowhere" else []:
            row[_token(source, time)] = 1 / len(sources.split())
        matrix[_token(target, time)] = row
    return matrix


def agrees(program: Program, tokens: np.ndarray) -> None:
    """Compute every printed formula; it has to give what the interpreter computes."""
    names = distinct_names(program.events)
    notation = Notation(digits=17, longest=np.inf, names=names)
    state, time = interpret(program, tokens), tokens.shape[1]
    for event, named in _named_states(program, state, notation):
        printed, expected = formula(event, notation), state[event.out]
        found = np.broadcast_to(compute(printed, named, time), expected.shape)
        scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=1e-11 * scale, err_msg=printed
        )


class _Reader:
    """Reads from the left; `rest` is what was not read yet."""

    def __init__(self, text: str, named: Mapping[str, np.ndarray], average: np.ndarray):
        self.rest, self.named, self.average = text, named, average
        self.names = sorted(named, key=len, reverse=True)

    def take(self, start: str) -> bool:
        if not self.rest.startswith(start):
            return False
        self.rest = self.rest[len(start) :]
        return True

    def need(self, start: str) -> None:
        assert self.take(start), f"{start!r} is missing before {self.rest!r}"

    def sum(self) -> Read:
        total = self.term(-1.0 if self.take("−") else 1.0)
        while True:
            if self.take(" + "):
                total = Read(_added(total.flat, self.term(1.0).flat))
            elif self.take(" − "):
                total = Read(_added(total.flat, self.term(-1.0).flat))
            else:
                return total

    def term(self, sign: float) -> Read:
        left = self.pair()
        left = Read(sign * left.array, left.is_matrix)
        while True:
            if self.take(" · "):
                left = _times(left, self.pair())
            elif self.take(" ⊙ "):
                a, b = left.flat, self.pair().flat
                assert a.shape[-1] == b.shape[-1]
                left = Read(a * b)
            elif self.take(" × "):
                left = _matrix_product(left, self.pair())
            elif self.take(" / "):
                below = self.pair().flat
                assert below.shape[-1] == 1
                with np.errstate(divide="ignore", invalid="ignore"):
                    left = Read(np.where(below == 0, np.nan, left.flat / below))
            else:
                return left

    def pair(self) -> Read:
        """Read a factor, uᵀ v or u vᵀ; a row vector before × stays one."""
        left = self.factor()
        if self.take("ᵀ "):
            if self.rest.startswith("× "):
                self.rest = " " + self.rest
                return Read(left.flat[..., None, :], True)
            right = self.factor()
            assert left.flat.shape[-1] == right.flat.shape[-1]
            return Read((left.flat * right.flat).sum(-1, keepdims=True))
        if self.rest.startswith(" ") and not re.match(r" [+−·⊙×/]( |$)", self.rest):
            self.need(" ")
            right = self.factor()
            self.need("ᵀ")
            return Read(left.flat[..., :, None] * right.flat[..., None, :], True)
        return left

    def factor(self) -> Read:
        found = self.primary()
        while self.take("["):
            inside, _, self.rest = self.rest.partition("]")
            if "×" in inside:
                shape = tuple(map(int, inside.split("×")))
                flat = found.flat
                found = Read(flat.reshape(*flat.shape[:-1], *shape), True)
            else:
                places: list[int] = []
                for run in inside.split(", "):
                    first, _, last = run.partition("–")
                    places += range(int(first) - 1, int(last or first))
                found = Read(found.flat[..., places])
        return found

    def primary(self) -> Read:
        for function in ("sym", "upper", "sum", "σ"):
            if self.take(f"{function}("):
                inner = self.sum()
                self.need(")")
                return _FUNCTIONS[function](inner)
        if self.take("softmax("):
            return self.softmax()
        if self.take("("):
            parts = [self.sum()]
            while self.take(", "):
                parts.append(self.sum())
            self.need(")")
            return parts[0] if len(parts) == 1 else _joined(parts)
        if self.take("["):
            inside, _, self.rest = self.rest.partition("]")
            rows = [[_float(each) for each in r.split(" ")] for r in inside.split("; ")]
            return Read(np.array(rows), True)
        for bar in "‖|":
            if self.take(bar):
                inner = self.sum().flat
                self.need(bar)
                assert bar == "‖" or inner.shape[-1] == 1
                length = np.linalg.norm(inner, axis=-1, keepdims=True)
                return Read(length**2 if self.take("²") else length)
        for name in self.names:
            if self.take(name):
                return Read(self.named[name])
        found = NUMBER.match(self.rest)
        assert found, f"what is {self.rest!r}?"
        self.rest = self.rest[found.end() :]
        return Read(np.array([float(found[0])]))

    def softmax(self) -> Read:
        batch = _batch(self.named)
        query = self.factor().flat
        assert self.take("ᵀ ") or self.take(" · ")
        key = self.factor().flat
        self.need(") ")
        value = self.factor().flat
        query, key, value = (
            np.broadcast_to(each, (*batch, each.shape[-1]))
            for each in (query, key, value)
        )
        assert query.shape == key.shape
        scores = query @ key.swapaxes(1, 2)
        scores = np.where(self.average > 0, scores, -np.inf)
        scores = np.concatenate([scores, np.zeros((*batch, 1))], axis=-1)
        scores -= scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores)
        weights /= weights.sum(axis=-1, keepdims=True)
        return Read(weights[..., :-1] @ value)


def _float(text: str) -> float:
    return float(text.replace("−", "-"))


def _added(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    assert a.shape[-1] == b.shape[-1] or 1 in (a.shape[-1], b.shape[-1])
    return a + b


def _times(a: Read, b: Read) -> Read:
    if a.is_matrix or b.is_matrix:
        number, matrix = (a, b) if b.is_matrix else (b, a)
        assert number.flat.shape[-1] == 1
        return Read(number.flat[..., None] * matrix.array, True)
    assert 1 in (a.flat.shape[-1], b.flat.shape[-1])
    return Read(a.flat * b.flat)


def _matrix_product(a: Read, b: Read) -> Read:
    assert a.is_matrix
    if not b.is_matrix:
        return Read((a.array @ b.array[..., None])[..., 0])
    product = a.array @ b.array
    return Read(product, True)


def _joined(parts: list[Read]) -> Read:
    shape = np.broadcast_shapes(*(part.flat.shape[:-1] for part in parts))
    each = [np.broadcast_to(p.flat, (*shape, p.flat.shape[-1])) for p in parts]
    return Read(np.concatenate(each, axis=-1))


def _sym(triangle: Read) -> Read:
    flat = triangle.flat
    side = (int(np.sqrt(8 * flat.shape[-1] + 1)) - 1) // 2
    matrix = np.zeros((*flat.shape[:-1], side, side))
    rows, columns = np.triu_indices(side)
    matrix[..., rows, columns] = flat
    matrix[..., columns, rows] = flat
    return Read(matrix, True)


def _upper(matrix: Read) -> Read:
    assert matrix.is_matrix
    rows, columns = np.triu_indices(matrix.array.shape[-1])
    return Read(matrix.array[..., rows, columns])


def _sigmoid(a: Read) -> Read:
    return Read(0.5 * (1 + np.tanh(a.flat / 2)))


_FUNCTIONS = {
    "sym": _sym,
    "upper": _upper,
    "sum": lambda a: Read(a.flat.sum(-1, keepdims=True)),
    "σ": _sigmoid,
}
