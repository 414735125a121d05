"""Programs on disk: their events as JSON, their matrices as arrays, in one file.

A program is data, so it is saved as data and loaded without running anything. Whoever
has the file can list the program, interpret it and trace the weights made of it.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import (
    Earlier,
    Labels,
    Sets,
    Single,
    Timesteps,
)
from algoscope.construction.language.values import (
    Attend,
    Divide,
    Event,
    Head,
    Multiply,
    Read,
    Register,
    Value,
)
from algoscope.foundation.files import (
    DamagedFileError,
    json_text,
    load_arrays,
    reading,
    save_arrays,
)

PROGRAM = "program.safetensors"
FORMAT = "algoscope program"


def save_program(program: Program, path: Path) -> None:
    """Write a program to a file.

    Example:
        >>> import tempfile
        >>> program = Program(dim=1, num_examples=1)
        >>> program.predict(program.dot(program.x, program.x))
        >>> file = Path(tempfile.mkdtemp()) / PROGRAM
        >>> save_program(program, file)
        >>> load_program(file).events[0].out
        dot
    """
    about, arrays = program_fields(program)
    metadata = {"format": FORMAT, "program": json_text(about)}
    save_arrays(path, arrays, metadata)


def program_fields(program: Program) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a program as plain values, and the arrays that they name.

    Registers are numbered: the token, those that positions fill, those of the events.
    """
    writer = _Writer(program)
    about = {
        "dim": program.dim,
        "num_examples": program.num_examples,
        "registers": [[each.name, each.size] for each in writer.registers],
        "positions": [
            [writer.numbers[register], writer.array(values)]
            for register, values in program.positions.items()
        ],
        "events": [writer.event(event) for event in program.events],
        "norms": [writer.value(norm) for norm in writer.norms],
        "output": writer.value(program.outputs),
        "alike": [
            [writer.numbers[each] for each in group if each in writer.numbers]
            for group in program.alike
        ],
    }
    return about, writer.arrays


def load_program(path: Path) -> Program:
    """Return the program in a file that `save_program` wrote."""
    try:
        arrays, metadata = load_arrays(path)
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise DamagedFileError(path, problem) from error
    if metadata.get("format") != FORMAT:
        raise DamagedFileError(path, "is not a saved program")
    with reading(path, "is not a saved program"):
        return _Reader(json.loads(metadata["program"]), arrays).program()


class _Writer:
    """Numbers registers, and names arrays so that equal ones are stored once."""

    def __init__(self, program: Program):
        self.registers = [
            program.token,
            *program.positions,
            *(event.out for event in program.events),
        ]
        self.numbers = {register: k for k, register in enumerate(self.registers)}
        self.arrays: dict[str, np.ndarray] = {}
        self.norms: list[Value] = []  # events share a layer if they share a norm
        self._names: dict[tuple[tuple[int, ...], bytes], str] = {}

    def array(self, array: np.ndarray) -> str:
        array = np.ascontiguousarray(array, np.float64)
        key = (array.shape, array.tobytes())
        if key not in self._names:
            self._names[key] = f"a{len(self._names)}"
            self.arrays[self._names[key]] = array
        return self._names[key]

    def value(self, value: Value) -> dict[str, Any]:
        terms = [[self.numbers[r], self.array(m)] for r, m in value.terms.items()]
        return {"terms": terms, "constant": self.array(value.constant)}

    def norm(self, norm: Value) -> int:
        for number, known in enumerate(self.norms):
            if known is norm:
                return number
        self.norms.append(norm)
        return len(self.norms) - 1

    def event(self, event: Event) -> dict[str, Any]:
        into = None if event.into is None else self.numbers[event.into]
        about: dict[str, Any] = {
            "kind": type(event).__name__,
            "out": self.numbers[event.out],
            "into": into,
        }
        if event.norm is not None:
            about["norm"] = self.norm(event.norm)
        if isinstance(event, Read):
            return about | {"source": self.value(event.source), "at": _map(event.at)}
        if isinstance(event, Attend):
            heads = [
                [self.value(each) for each in (head.query, head.key, head.value)]
                for head in event.heads
            ]
            return about | {"heads": heads, "at": _map(event.at)}
        if isinstance(event, Divide):
            return about | {"value": self.value(event.value)}
        factors = {
            name: self.value(getattr(event, name)) for name in ("p", "q", "plus")
        }
        return about | factors | {"mix": self.array(event.mix)}


def _map(at: Timesteps) -> dict[str, Any]:
    if not isinstance(at, (Earlier, Single, Labels, Sets)):
        raise TypeError(f"a timestep map of type {type(at).__name__} cannot be saved")
    return {"kind": type(at).__name__, **vars(at)}


class _Reader:
    """Makes a program of what a writer wrote, and checks every shape."""

    def __init__(self, about: dict[str, Any], arrays: dict[str, np.ndarray]):
        self.about, self.arrays = about, arrays
        self.made = Program(about["dim"], about["num_examples"])
        self.registers = [Register(str(n), int(s)) for n, s in about["registers"]]
        if self.registers[0].size != self.made.token.size:
            raise ValueError("the token has another size")
        self.registers[0] = self.made.token
        self.norms = [self._value(each) for each in about["norms"]]

    def program(self) -> Program:
        made = self.made
        for number, name in self.about["positions"]:
            register = self.registers[number]
            made.positions[register] = self._array(name, (made.time, register.size))
        for each in self.about["events"]:
            self._add(each)
        output = self._value(self.about["output"])
        made.predict(*(output[k] for k in range(output.size)))
        made.alike = [[self.registers[k] for k in g] for g in self.about["alike"]]
        return made

    def _array(self, name: str, shape: Sequence[int | None]) -> np.ndarray:
        array = self.arrays[name].astype(np.float64)
        fits = len(shape) == array.ndim and all(
            wanted in (None, size)
            for wanted, size in zip(shape, array.shape, strict=True)
        )
        if not fits or not np.isfinite(array).all():
            raise ValueError(f"array {name} does not fit")
        return array

    def _value(self, about: dict[str, Any], size: int | None = None) -> Value:
        constant = self._array(about["constant"], (size,))
        terms = {}
        for number, name in about["terms"]:
            register = self.registers[number]
            terms[register] = self._array(name, (len(constant), register.size))
        return Value(terms, constant)

    def _add(self, about: dict[str, Any]) -> None:
        kind, out = about["kind"], self.registers[about["out"]]
        into = None if about["into"] is None else self.registers[about["into"]]
        norm = self.norms[about["norm"]] if "norm" in about else None
        event: Event
        if kind == "Read":
            event = Read(out, self._value(about["source"], out.size), _timesteps(about))
        elif kind == "Attend":
            heads = []
            for query, key, value in about["heads"]:
                asked = self._value(query)
                held = self._value(key, asked.size)
                heads.append(Head(asked, held, self._value(value, out.size)))
            event = Attend(out, tuple(heads), _timesteps(about), into)
        elif kind == "Divide" and norm is not None:
            event = Divide(out, self._value(about["value"], out.size), norm)
        elif kind == "Multiply":
            p = self._value(about["p"])
            q, plus = (
                self._value(about["q"], p.size),
                self._value(about["plus"], out.size),
            )
            mix = self._array(about["mix"], (out.size, p.size))
            event = Multiply(out, p, q, mix, plus, into, norm)
        else:
            raise ValueError(f"an event of kind {kind!r}")
        if into is not None and into.size != out.size:
            raise ValueError(f"register {into.name} has another size")
        self.made.append(event)


def _timesteps(about: dict[str, Any]) -> Timesteps:
    values = dict(about["at"])
    kinds = {"Earlier": Earlier, "Single": Single, "Labels": Labels, "Sets": Sets}
    kind = kinds[values.pop("kind")]
    if kind is Sets:
        return Sets(tuple(tuple(map(int, each)) for each in values["sets"]))
    return kind(**values)
