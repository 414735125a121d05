"""Weights, from plans of what each layer is to do (paper app. C.4).

A `Plan` describes one layer over the rows of the hidden state. With h a column and
z = h + a the column after attention,

    a = Σ over heads of value · (average of h over K(i))
    h′ = z + out (p z ⊙ q z) + linear z + constant

LayerNorm stands between z and the feed-forward part. Two rows hold N and −N, so that
they alone decide its variance 2N²/H, and a row that is always zero, subtracted from
every other, removes its mean. Where the two hold N·c instead, the feed-forward part
reads z/|c|; with a pair for each component of a vector v, it reads z/‖v‖.

`write_layer` turns a plan into the weights of one layer, `stack` joins layers of
different sizes, and `assemble_transformer` adds what is around them: the token
embedding puts every token into its rows, the position embedding holds the code, the
pads and what else an algorithm starts from, the output reads one number.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.language.timesteps import SELF, Code, Timesteps
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.layer import TransformerLayer
from algoscope.model.stack import INNER_AXES
from algoscope.model.transformer import Transformer

# Linear in the rows of a column; the last number is constant.
Form = Float[np.ndarray, "_rows _width"]
Weights = dict[str, Float[np.ndarray, "..."]]  # of one layer, by name


@dataclass(frozen=True)
class Frame:
    """Where the rows are that every layer needs: the code, the pads and the zero."""

    hidden: int
    code: slice
    pads: tuple[tuple[int, int], ...]  # the rows of ±N; more than one pair for norms
    reference: int | None  # always zero; None where the pads balance the column

    def form(self, rows: int) -> Form:
        """Return a form that is zero."""
        return np.zeros((rows, self.hidden + 1))


@dataclass
class HeadPlan:
    """What one head adds to a column; `query` and `key` if it scores by content."""

    timesteps: Timesteps
    value: Form  # one row per row of the hidden state
    query: Form | None = None
    key: Form | None = None


@dataclass
class Plan:
    """What one layer does."""

    heads: list[HeadPlan]
    p: Form  # one row per product
    q: Form
    out: Float[np.ndarray, "hidden products"]
    p_range: Float[np.ndarray, " products"]  # the largest |p| and |q| to expect
    q_range: Float[np.ndarray, " products"]
    linear: Form  # one row per row of the hidden state

    @classmethod
    def empty(cls, frame: Frame) -> "Plan":
        """Return the plan of a layer that changes nothing."""
        return cls(
            heads=[],
            p=frame.form(0),
            q=frame.form(0),
            out=np.zeros((frame.hidden, 0)),
            p_range=np.zeros(0),
            q_range=np.zeros(0),
            linear=frame.form(frame.hidden),
        )

    def head(self, timesteps: Timesteps, frame: Frame) -> HeadPlan:
        """Return the head that follows a map; add it if there is none yet."""
        for head in self.heads:
            if head.timesteps == timesteps and head.query is None:
                return head
        self.heads.append(HeadPlan(timesteps, frame.form(frame.hidden)))
        return self.heads[-1]

    def add_products(
        self,
        rows: Int[np.ndarray, " size"] | slice,
        mix: Float[np.ndarray, "size products"],
        operands: tuple[Form, Form],
        ranges: tuple[Float[np.ndarray, " products"], Float[np.ndarray, " products"]],
    ) -> None:
        """Add mix (p z ⊙ q z) to some rows, for p z and q z within these ranges."""
        out = np.zeros((len(self.out), mix.shape[1]))
        out[rows] = mix
        self.out = np.hstack([self.out, out])
        self.p, self.q = (
            np.vstack([self.p, operands[0]]),
            np.vstack([self.q, operands[1]]),
        )
        self.p_range = np.concatenate([self.p_range, ranges[0]])
        self.q_range = np.concatenate([self.q_range, ranges[1]])

    def write_pads(
        self, frame: Frame, pad: float, norm: Sequence[tuple[Timesteps, Form]]
    ) -> None:
        """Set the pads to ±N·v, where v is a sum of forms, each read along a map."""
        own = self.head(SELF, frame)
        for k, pair in enumerate(frame.pads):
            for row, signed in zip(pair, (pad, -pad), strict=True):
                own.value[row, row] -= 1
                for timesteps, form in norm:
                    if k < len(form):
                        self.head(timesteps, frame).value[row] += signed * form[k]


def write_layer(plan: Plan, frame: Frame, code: Code, numerics: Numerics) -> Weights:
    """Return the weights of a layer that does what the plan says."""
    heads = plan.heads
    if numerics.pads == "paper":
        heads = _balanced(plan, frame)
    return _attention(heads, frame, code, numerics) | _feed_forward(
        plan, frame, numerics
    )


def through_norm(
    form: Form, frame: Frame, numerics: Numerics
) -> tuple[Float[np.ndarray, "rows hidden"], Float[np.ndarray, " rows"]]:
    """Return the weights and biases that compute a form of z from λ(z).

    λ(z) is (z − E[z]) / √(2N²/H + ε); its reference row is −E[z] over the same root.
    """
    scale = np.sqrt(2 * numerics.pad**2 / frame.hidden + numerics.layer_norm_epsilon)
    weights = form[:, :-1].copy()
    if frame.reference is not None:
        weights[:, frame.reference] -= weights.sum(axis=1)
    return scale * weights, form[:, -1].copy()


def _balanced(plan: Plan, frame: Frame) -> list[HeadPlan]:
    """Return the heads with a second pad that makes the column's sum zero (app. C.4.4).

    The paper's pads are N and −N − Σz: the mean is then zero, but the variance off by
    Σz/N, to first order.
    """
    ((_, last),) = frame.pads
    heads = [HeadPlan(h.timesteps, h.value.copy(), h.query, h.key) for h in plan.heads]
    own = [head for head in heads if head.timesteps == SELF and head.query is None]
    if not own:
        own = [HeadPlan(SELF, frame.form(frame.hidden))]
        heads += own
    for head in heads:
        head.value[last] = 0
        head.value[last] = -head.value.sum(axis=0)
    own[0].value[last, :-1] -= 1
    return heads


def _attention(
    heads: list[HeadPlan], frame: Frame, code: Code, numerics: Numerics
) -> Weights:
    parts: dict[str, list] = {name: [] for name in ("q", "k", "v", "f")}
    for head in heads or [HeadPlan(SELF, frame.form(frame.hidden))]:
        content = head.query is not None and head.key is not None
        scoring = code.scoring(head.timesteps, numerics.gap, content=content)
        for name, by_code, form in zip(
            "qk", scoring, (head.query, head.key), strict=True
        ):
            whole = frame.form(len(by_code))
            whole[:, frame.code] = by_code[:, :-1]
            whole[:, -1] = by_code[:, -1]
            parts[name].append(whole if form is None else np.vstack([whole, form]))
        rows = np.flatnonzero(head.value.any(axis=1))
        parts["v"].append(head.value[rows])
        parts["f"].append(np.eye(frame.hidden)[:, rows])
    weights: Weights = {"b_f": np.zeros(frame.hidden)}
    for name in "qkv":
        forms = _pad_and_stack(parts[name], (1, frame.hidden + 1))
        split = [(form[:, :-1], form[:, -1]) for form in forms]
        if numerics.pre_norm:
            split = [through_norm(form, frame, numerics) for form in forms]
        weights[f"w_{name}"] = np.stack([w for w, _ in split])
        weights[f"b_{name}"] = np.stack([b for _, b in split])
    weights["w_f"] = _pad_and_stack(parts["f"], (frame.hidden, 1))
    return weights


def _feed_forward(plan: Plan, frame: Frame, numerics: Numerics) -> Weights:
    unit = numerics.product
    p = plan.p / plan.p_range[:, None]
    q = plan.q / plan.q_range[:, None]
    size = plan.out * (plan.p_range * plan.q_range)
    constantly = np.eye(frame.hidden + 1)[-1]
    inner = [
        a * p + b * q + c * constantly
        for a, b, c in zip(unit.p, unit.q, unit.shift, strict=True)
    ]
    outer = [weight * size for weight in unit.weight]
    constant = size.sum(axis=1) * unit.constant
    rows = np.flatnonzero(plan.linear[:, :-1].any(axis=1))
    linear, into = plan.linear[rows], np.eye(frame.hidden)[:, rows]
    constant += np.where(plan.linear[:, :-1].any(axis=1), 0, plan.linear[:, -1])
    if numerics.bypass is None:
        inner += [linear, -linear]
        outer += [into, -into]
    else:
        shifted = linear.copy()
        shifted[:, -1] += numerics.bypass
        inner.append(shifted)
        outer.append(into)
        constant -= numerics.bypass * into.sum(axis=1)
    w_2, b_2 = through_norm(np.vstack(inner), frame, numerics)
    return {"w_2": w_2, "b_2": b_2, "w_1": np.hstack(outer), "b_1": constant}


def _pad_and_stack(
    arrays: list[Float[np.ndarray, "..."]], least: tuple[int, ...]
) -> Float[np.ndarray, "..."]:
    """Return arrays of different shapes as one, padded with zeros."""
    shape = np.max([least, *(array.shape for array in arrays)], axis=0)
    stacked = np.zeros((len(arrays), *shape))
    for k, array in enumerate(arrays):
        stacked[(k, *(slice(size) for size in array.shape))] = array
    return stacked


def shared_widths(sizes: list[int]) -> tuple[int, ...]:
    """Return widths that are as large or a little larger, and few of them different.

    Layers of one width share their program. A width joins the next larger one if that
    costs it at most a third more, or if both are at most an eighth of the widest.

    Example:
        >>> shared_widths([0, 8, 48, 56, 168, 192])
        (8, 8, 56, 56, 192, 192)
    """
    shared: dict[int, int] = {}
    widest = width = max(1, *sizes)
    for size in sorted(set(sizes), reverse=True):
        if size < 0.75 * width and width > widest / 8:
            width = max(1, size)
        shared[size] = width
    return tuple(shared[size] for size in sizes)


def stack(layers: list[Weights], numerics: Numerics) -> TransformerLayer:
    """Return layers of different sizes as one stack.

    Heads are padded with zeros, and MLPs to one of a few `shared_widths`.
    """
    if not layers:
        raise InvalidValueError("layers", "hold at least one layer", "none")
    sizes = shared_widths([len(layer["b_2"]) for layer in layers])
    equal = numerics.equal_widths or len(set(sizes)) == 1
    stacked = {}
    for name in layers[0]:
        own = [layer[name] for layer in layers]
        if name in INNER_AXES and not equal:
            axis = INNER_AXES[name]
            padded = []
            for array, size in zip(own, sizes, strict=True):
                least = tuple(size * (k == axis) for k in range(array.ndim))
                padded.append(_pad_and_stack([array], least)[0])
            whole = np.concatenate(padded, axis)
        else:
            whole = _pad_and_stack(own, (0,) * own[0].ndim)
        stacked[name] = jnp.asarray(whole, numerics.dtype)
    return TransformerLayer(**stacked, inner_sizes=None if equal else sizes)


def assemble_transformer(
    layers: TransformerLayer,
    numerics: Numerics,
    frame: Frame,
    *,
    token_rows: Int[np.ndarray, " token"],
    positions: Float[np.ndarray, "time hidden"],
    output: Form,
) -> Transformer:
    """Return the transformer around some layers; `output` is the form it predicts."""
    embedding = np.zeros((frame.hidden, len(token_rows)))
    embedding[token_rows, np.arange(len(token_rows))] = 1
    w_o, b_o = read_out(output, frame, numerics)
    return Transformer(
        w_e=jnp.asarray(embedding, numerics.dtype),
        positions=jnp.asarray(positions, numerics.dtype),
        layers=layers,
        w_o=w_o,
        b_o=b_o,
        block=numerics.block,
    )


def read_out(
    output: Form, frame: Frame, numerics: Numerics
) -> tuple[Float[Array, " hidden"], Float[Array, ""]]:
    """Return the weights and the bias that read one number off the last layer."""
    w_o, b_o = output[:, :-1], output[:, -1]
    if numerics.pre_norm:
        w_o, b_o = through_norm(output, frame, numerics)
    return (
        jnp.asarray(w_o[0], numerics.dtype),
        jnp.asarray(b_o[0], numerics.dtype),
    )


def code_and_pads(
    frame: Frame, code: Code, numerics: Numerics
) -> Float[np.ndarray, "time hidden"]:
    """Return a position embedding with the code and the first pair of pads."""
    positions = np.zeros((len(code.units), frame.hidden))
    positions[:, frame.code] = code.units
    positions[:, frame.pads[0]] = numerics.pad, -numerics.pad
    return positions


def require_supported(numerics: Numerics, *, divides: bool) -> None:
    """Reject float64 where JAX has it off, and divisions in a pre-norm block."""
    if numerics.dtype == "float64" and jnp.zeros(0).dtype != jnp.float64:
        remedy = "Call jax.config.update('jax_enable_x64', True) first, or use float32."
        raise InvalidValueError("dtype", "be what JAX can hold", "float64", remedy)
    if numerics.pre_norm and divides:
        rule = "be off for an algorithm that divides"
        remedy = "The attention after a division would read everything divided."
        raise InvalidValueError("pre_norm", rule, True, remedy)
