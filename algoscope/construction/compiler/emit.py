"""The weights of a scheduled, allocated and calibrated program."""

import numpy as np

from algoscope.construction.compiler.allocate import Allocation
from algoscope.construction.compiler.calibrate import Calibration
from algoscope.construction.compiler.layer_weights import Form, HeadPlan, Plan
from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.compiler.schedule import Schedule
from algoscope.construction.language.events import (
    Attend,
    Event,
    FeedForwardEvent,
    Multiply,
    Read,
)
from algoscope.construction.language.timesteps import SELF, Timesteps
from algoscope.construction.language.values import Value
from algoscope.foundation.validation import InvalidValueError

ONE = Value.constantly(1.0)


class Emitter:
    """Turns the events of one layer after the other into plans."""

    def __init__(
        self,
        schedule: Schedule,
        allocation: Allocation,
        calibration: Calibration,
        numerics: Numerics,
    ):
        self.schedule = schedule
        self.allocation = allocation
        self.calibration = calibration
        self.numerics = numerics
        self.frame = allocation.frame
        self.pads_in_place = True  # whether the pads hold what the positions gave them

    def form(self, value: Value) -> Form:
        """Return a value as a form over the rows of the hidden state."""
        form = self.frame.form(value.size)
        for register, matrix in value.terms.items():
            form[:, self.allocation.rows[register]] += matrix
        form[:, -1] = value.constant
        return form

    def plan(self, layer: int) -> Plan:
        """Return what a layer does. Layers have to be asked for in order."""
        plan = Plan.empty(self.frame)
        events = self.schedule.events(layer)
        for event in events:
            rows = self.allocation.rows[event.out]
            if event.out in self.allocation.erased and event.into is None:
                plan.head(SELF, self.frame).value[rows, rows] -= 1
            if isinstance(event, Read):
                head = plan.head(event.at, self.frame)
                head.value[rows] += self.form(event.source)
            elif isinstance(event, Attend):
                self._attend(plan, event)
            elif isinstance(event, Multiply):
                self._multiply(plan, event)
            else:
                plan.linear[rows] += self.form(event.value)
        self._write_pads(plan, events)
        return plan

    def _attend(self, plan: Plan, event: Attend) -> None:
        for head in event.heads:
            value = self.frame.form(self.frame.hidden)
            value[self.allocation.rows[event.out]] = self.form(head.value)
            query, key = self.form(head.query), self.form(head.key)
            plan.heads.append(HeadPlan(event.at, value, query, key))

    def _multiply(self, plan: Plan, event: Multiply) -> None:
        rows = self.allocation.rows[event.out]
        out = np.zeros((self.frame.hidden, event.p.size))
        out[rows] = event.mix
        plan.p = np.vstack([plan.p, self.form(event.p)])
        plan.q = np.vstack([plan.q, self.form(event.q)])
        plan.out = np.hstack([plan.out, out])
        plan.p_range = np.concatenate([plan.p_range, self.calibration.p[event]])
        plan.q_range = np.concatenate([plan.q_range, self.calibration.q[event]])
        plan.linear[rows] += self.form(event.plus)

    def _refuse_norm(self, norm: Value) -> None:
        if self.numerics.pads == "paper" and norm.size > 1:
            rule = "be a number with the paper's pads"
            remedy = "Use pads='reference'."
            raise InvalidValueError("norm", rule, f"{norm.size} of them", remedy)

    def _write_pads(self, plan: Plan, events: list[Event]) -> None:
        """Make the pads ±N·v for the norm v of this layer, or ±N again after one."""
        norms = [e.norm for e in events if isinstance(e, FeedForwardEvent) and e.norm]
        if not norms and self.pads_in_place:
            return
        norm = norms[0] if norms else ONE
        self._refuse_norm(norm)
        self.pads_in_place = not norms
        # What this attention reads is not there yet: read it into the pads as well.
        reads = {each.out: each for each in events if isinstance(each, Read)}
        parts: list[tuple[Timesteps, Form]] = []
        still = Value(
            {r: m for r, m in norm.terms.items() if r not in reads}, norm.constant
        )
        parts.append((SELF, self.form(still)))
        for register, matrix in norm.terms.items():
            if register in reads:
                read = reads[register]
                parts.append((read.at, matrix @ self.form(read.source)))
        plan.write_pads(self.frame, self.numerics.pad, parts)
