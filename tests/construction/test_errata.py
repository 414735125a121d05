"""The errata of docs/errata.md: the paper's version, the right one, their difference.

There is one test for each line of that page, in its order; the last test compares the
two. Matrices have the paper's form, one row per hidden unit and one column per
timestep, and the primitives and RAW are written independently here, as sections 3 and
C.2 define them.
"""

import math
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from equinox import filter_jit
from support.approximations import (
    division,
    layer_norm,
    norm_bypass,
    pair_bypass,
    paper_division,
    paper_norm_bypass,
    shift_bypass,
    symmetric_norm_bypass,
)
from support.primitives import compute

from algoscope.construction import Construction, Numerics, numerics, paper_numerics
from algoscope.construction.algorithms import Newton, ScanSGD
from algoscope.construction.compiler.activations import gelu, gelu_tanh, relu, taylor
from algoscope.construction.compiler.products import (
    PAPER_SQUARE,
    PiecewiseSquare,
    paper_difference,
    paper_product,
    uniform_square,
)
from algoscope.construction.language.timesteps import PREVIOUS, Compact, OneHot, Single
from algoscope.construction.paper.chain import (
    Chain,
    ridge_chain,
    sgd_chain,
    theorem_1,
    theorem_2,
)
from algoscope.construction.paper.primitives import Aff, Div, Dot, Mul
from algoscope.construction.paper.raw import Mov
from algoscope.construction.paper.steps import Layout, Step
from algoscope.foundation.validation import InvalidValueError
from algoscope.model import Activation, stack
from algoscope.model.tokens import example_tokens
from algoscope.model.transformer import Transformer

pytestmark = pytest.mark.optimized  # Rounding is the matter.

Matrix = np.ndarray
Rows = tuple[int, int]  # from the first on, up to the second

D, ALPHA, LAMBDA = 3, 0.05, 0.3
W = np.array([0.5, -1.0, 1.5])
X = np.array([[1.0, 0.5, -1.5], [2.0, -1.5, -0.5], [1.5, 1.0, -2.0]])
Y = np.array([2.0, -1.0])


def tokens(num_examples: int) -> Matrix:
    """Return [0, x₁], [y₁, 0], …, [0, xₙ₊₁] as rows, as the chains take them."""
    rows = np.zeros((2 * num_examples + 1, D + 1))
    rows[::2, 1:] = X[: num_examples + 1]
    rows[1::2, 0] = Y[:num_examples]
    return rows


def step(w: Matrix, x: Matrix, y: float, decayed: Matrix | None = None) -> Matrix:
    """Return w − 2α(x(wᵀx − y) + λw): eq. (sgd), l. 275."""
    decayed = w if decayed is None else decayed
    return w - 2 * ALPHA * (x * (w @ x - y) + LAMBDA * decayed)


W1 = step(W, X[0], Y[0])
W2 = step(W1, X[1], Y[1])


def largest(difference: Matrix | float) -> float:
    return float(np.max(np.abs(difference)))


def order(error: Callable[[float], float], coarse: float, fine: float) -> float:
    """Return k if the error falls as N⁻ᵏ."""
    return math.log(error(coarse) / error(fine)) / math.log(fine / coarse)


# The primitives of section 3, on the matrix H.


def mov(h: Matrix, s: int, t: int, read: Rows, write: Rows) -> Matrix:
    after = h.copy()
    after[slice(*write), t] = h[slice(*read), s]
    return after


def aff(
    h: Matrix,
    read: Rows,
    other: Rows,
    write: Rows,
    w_1: Any = 1.0,
    w_2: Any = 1.0,
    b: Matrix | None = None,
) -> Matrix:
    """W₁ and W₂ may be numbers; an empty operand is (0, 0)."""
    total = 0.0 if b is None else b[:, None]
    for rows, matrix in ((read, w_1), (other, w_2)):
        if rows[1] > rows[0]:
            part = h[slice(*rows)]
            total = total + (matrix @ part if np.ndim(matrix) else matrix * part)
    after = h.copy()
    after[slice(*write)] = total
    return after


def mul(
    h: Matrix, a: int, b: int, c: int, read: Rows, other: Rows, write: Rows
) -> Matrix:
    after = h.copy()
    for i, column in enumerate(h.T):
        left = column[slice(*read)].reshape(a, b)
        after[slice(*write), i] = (left @ column[slice(*other)].reshape(b, c)).ravel()
    return after


def appendix_a(
    decay: float = LAMBDA,
    columns: tuple[tuple[int, int], ...] = ((0, 1), (1, 2)),
    move: Callable[..., Matrix] = mov,
) -> list[Matrix]:
    """Return H before and after each of the nine lines, in the rows of l. 526-534."""
    y, x, wx, e = (0, 1), (1, 1 + D), (1 + D, 2 + D), (2 + D, 3 + D)
    xe, w, g = ((3 + k * D, 3 + (k + 1) * D) for k in (1, 2, 3))
    h = np.zeros((3 + 4 * D, 3))
    h[: D + 1] = tokens(1).T
    lines: list[Callable[[Matrix], Matrix]] = [
        lambda h: move(h, *columns[0], x, x),
        lambda h: aff(h, x, (0, 0), wx, w_1=W[None]),
        lambda h: aff(h, wx, y, e, w_2=-1.0),
        lambda h: mul(h, D, 1, 1, x, e, xe),
        lambda h: aff(h, (0, 0), (0, 0), w, b=W),
        lambda h: aff(h, xe, w, g, w_2=decay),
        lambda h: aff(h, w, g, w, w_2=-2 * ALPHA),
        lambda h: move(h, *columns[1], w, w),
        lambda h: mul(h, 1, D, 1, w, x, (3 + 3 * D, 4 + 3 * D)),
    ]
    states = [h]
    for line in lines:
        states.append(line(states[-1]))
    return states


def prediction(states: list[Matrix]) -> float:
    return float(states[-1][3 + 3 * D, 2])


def with_line(chain: Chain, place: int, new: Step) -> Chain:
    """Return a chain with one line changed."""
    lines = list(chain.lines)
    lines[place] = (chain.labels[place], new)
    return replace(chain, lines=lines)


# RAW, eq. (rawdef), l. 800.

Timesteps = Callable[[int], Collection[int]]


def raw(
    h: Matrix, kind: str, s: Rows, r: Rows, w: Rows, timesteps: Timesteps, w_o: Matrix
) -> Matrix:
    """Return h′ᵢ[w] = W_o (average of h[r] over K(i) ⊛ hᵢ[s]), W_a and W being I."""
    after = h.copy()
    for i in range(h.shape[1]):
        read, members = np.zeros(r[1] - r[0]), list(timesteps(i))
        if members:
            read = h[slice(*r), members].mean(axis=1)
        if s[1] > s[0]:
            own = h[slice(*s), i]
            read = read + own if kind == "+" else read * own
        after[slice(*w), i] = w_o @ read
    return after


def mov_as_raw(h: Matrix, s: int, t: int, r: Rows, w: Rows) -> Matrix:
    """Return mov with the K of l. 816: empty in all columns but t."""
    identity = np.eye(r[1] - r[0])
    return raw(h, "+", (0, 0), r, w, lambda i: [s] if i == t else [], identity)


def softmax(scores: Matrix, *, imaginary: bool = False) -> Matrix:
    """Return the causal weights of scores [i, j]; with a score of 0 besides, or not."""
    weights = np.zeros_like(scores)
    for i, row in enumerate(scores):
        seen = np.append(row[: i + 1], 0) if imaginary else row[: i + 1]
        shares = np.exp(seen - seen.max())
        weights[i, : i + 1] = (shares / shares.sum())[: i + 1]
    return weights


# Notation.


def test_erratum_04_two_gelus():
    x = np.linspace(-6, 6, 120_001)
    difference = np.abs(gelu(x) - gelu_tanh(x))
    assert difference.max() == pytest.approx(4.73e-4, rel=1e-3)
    assert abs(x[difference.argmax()]) == pytest.approx(2.70, abs=0.01)
    activations: tuple[Activation, ...] = ("gelu", "gelu_tanh")
    for activation, fourth in zip(activations, (-1 / 6, -0.16749), strict=True):
        a = taylor(activation)
        assert a[2] == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-12)
        assert a[4] / a[2] == pytest.approx(fourth, abs=5e-6)


def test_erratum_05_examples_are_rows(rng):
    x, y = rng.normal(size=(7, 3)), rng.normal(size=7)  # one row per example
    w = np.linalg.solve(x.T @ x + LAMBDA * np.eye(3), x.T @ y)
    assert largest(2 * x.T @ (x @ w - y) + 2 * LAMBDA * w) < 1e-12
    columns = x.T  # X = [x₁, …, xₙ], as printed
    assert (columns.T @ columns).shape == (7, 7)  # and Xᵀy is not defined


# Primitives.


def test_erratum_06_matrix_of_mov():
    h = np.arange(16.0).reshape(8, 2)
    (i, j), (i2, j2), s, t = (1, 3), (4, 6), 0, 1
    right = np.concatenate([h[:i2, t], h[i:j, s], h[j2:, t]])
    np.testing.assert_array_equal(right, mov(h, s, t, (i, j), (i2, j2))[:, t])
    printed = np.concatenate([h[:i, t], h[i2:j2, s], h[[j], t]])
    assert len(printed) == 4 < len(right) == len(h)


def test_erratum_07_mov_copies_the_wrong_way(rng):
    h, i, j = rng.normal(size=(6, 3)), (0, 2), (3, 5)
    expected = mov(h, 0, 1, i, j)[:, 1]
    np.testing.assert_array_equal(mov_as_raw(h, 0, 1, i, j)[:, 1], expected)
    swapped = mov_as_raw(h, 0, 1, j, i)[:, 1]
    np.testing.assert_array_equal(swapped[:2], h[3:5, 0])  # copied the other way
    assert largest(swapped - expected) > 0.1


def test_erratum_08_columns_of_mov():
    assert prediction(appendix_a()) == pytest.approx(W1 @ X[1], abs=1e-14)
    # Section 3 has mov(s, t, …) with t ≥ s; appendices A and B print mov(t, s, …).
    printed = appendix_a(columns=((1, 0), (2, 1)))
    assert not printed[1][1 : D + 1, 0].any()  # x₁ is erased, by what comes later
    assert prediction(printed) - W1 @ X[1] == pytest.approx(-1.99, abs=0.01)
    with pytest.raises(InvalidValueError, match="Attention is causal"):
        Mov(1, 0, "x", "x")


def test_erratum_09_mov_erases_other_columns():
    printed = appendix_a(move=mov_as_raw)
    assert not printed[1][1 : D + 1, [0, 2]].any()  # the query, too
    assert prediction(printed) == 0
    right = theorem_1(D, W, ALPHA, LAMBDA).predict(tokens(1))
    assert right == pytest.approx(W1 @ X[1], abs=1e-14)  # 2.55


def test_erratum_10_a_column_reads_itself(rng):
    h = rng.normal(size=(5, 3))
    expected = h[0] * h[2] + h[1] * h[3]

    def dot(timesteps: Timesteps) -> Matrix:
        return raw(h, "⊙", (0, 2), (2, 4), (4, 5), timesteps, np.ones((1, 2)))[4]

    np.testing.assert_allclose(dot(lambda i: [i]), expected, atol=1e-14)
    assert not dot(lambda i: [j for j in [i] if j < i]).any()
    layout = Layout({"u": 2, "v": 2, "w": 1})
    ours = Dot("u", "v", "w").raw(layout).exact(h.T, layout)
    np.testing.assert_allclose(ours[:, 4], expected, atol=1e-14)


def test_erratum_12_aff_writes_all_rows(rng):
    h, eye = rng.normal(size=(6, 2)), np.eye(3)
    with pytest.raises(ValueError, match="broadcast"):
        raw(h, "+", (0, 0), (0, 3), (3, 4), lambda i: [i], eye)
    right = raw(h, "+", (0, 0), (0, 3), (3, 6), lambda i: [i], eye)
    np.testing.assert_array_equal(right[3:], h[:3])


# Theorem 1.


def test_erratum_13_penalty_is_added():
    assert prediction(appendix_a(LAMBDA)) == pytest.approx(W1 @ X[1], abs=1e-14)
    excess = prediction(appendix_a(-LAMBDA)) - W1 @ X[1]
    assert excess == pytest.approx(4 * ALPHA * LAMBDA * (W @ X[1]))  # 0.105


def test_erratum_14_penalty_is_not_doubled():
    excess = prediction(appendix_a(-2 * LAMBDA)) - W1 @ X[1]
    assert excess == pytest.approx(6 * ALPHA * LAMBDA * (W @ X[1]))  # 0.158
    right = theorem_1(D, W, ALPHA, LAMBDA).predict(tokens(1))
    assert right == pytest.approx(W1 @ X[1], abs=1e-14)


def test_erratum_15_third_column():
    x_e = appendix_a()[4][3 + D : 3 + 2 * D, 2]
    np.testing.assert_allclose(x_e, X[1] * (W @ X[1]), atol=1e-14)
    assert largest(x_e - X[1] * (W @ X[0])) > 1


def test_erratum_16_rows_are_used_again():
    states = appendix_a()
    printed = sum((1, D, 1, 1, D, D, D, D, D, 1))  # the rows of l. 549-558
    assert printed == 6 * D + 4
    assert len(states[-1]) == 4 * D + 3
    rows = slice(3 + 2 * D, 3 + 3 * D)
    np.testing.assert_array_equal(states[6][rows], np.tile(W[:, None], 3))
    np.testing.assert_allclose(states[8][rows, 1:].T, [W1, W1])  # "w w w" is gone
    assert states[8][3 + 3 * D, 2] != states[9][3 + 3 * D, 2]  # g, then the prediction


def test_erratum_17_second_step_decays_the_second_w():
    right = sgd_chain(D, 2, W, ALPHA, LAMBDA).predict(tokens(2))
    assert right == pytest.approx(W2 @ X[2], abs=1e-14)
    printed = step(W1, X[1], Y[1], decayed=W) @ X[2]
    assert printed - right == pytest.approx(2 * ALPHA * LAMBDA * (W1 - W) @ X[2])
    assert abs(printed - right) > 0.01


def test_erratum_18_later_steps_read_w():
    chain = sgd_chain(D, 2, W, ALPHA, LAMBDA)
    assert chain.predict(tokens(2)) == pytest.approx(W2 @ X[2], abs=1e-14)
    assert len(chain.lines) == 2 * 8 + 1
    again = [k for k, label in enumerate(chain.labels) if label == "wᵀx"][1]
    repeated = with_line(chain, again, Aff("x", None, "wx", w_1=W[None]))
    assert abs(repeated.predict(tokens(2)) - W2 @ X[2]) > 0.1
    unmoved = with_line(chain, chain.labels.index("move w1"), Mov(0, 0, "y", "y"))
    assert abs(unmoved.predict(tokens(2)) - W2 @ X[2]) > 0.1


def test_erratum_19_units_of_the_position_embedding():
    def units(num_examples: int) -> int:
        time, layers = 2 * num_examples + 1, 8 * num_examples + 1
        return 2 * time * layers  # 2p for each layer, p = T

    assert [units(n) for n in (1, 5, 10, 40)] == [54, 902, 3402, 52_002]
    chains = [sgd_chain(1, n, W[:1], ALPHA, LAMBDA) for n in (1, 3)]
    hidden = {len(chain.compile(numerics("float32")).w_e) for chain in chains}
    assert len(hidden) == 1  # three units, shared by all layers
    assert hidden.pop() < units(1)


# Theorem 2.


def ridge(num_examples: int) -> float:
    x, y = X[:num_examples], Y[:num_examples]
    w = np.linalg.solve(x.T @ x + LAMBDA * np.eye(D), x.T @ y)
    return float(w @ X[num_examples])


def test_erratum_20_first_product_is_dead():
    chain = theorem_2(D, LAMBDA)
    assert chain.labels[1] == "x₁y"
    shorter = replace(chain, lines=[chain.lines[0], *chain.lines[2:]])
    assert len(shorter.lines) == 13
    assert shorter.predict(tokens(1)) == pytest.approx(ridge(1), abs=1e-13)


def test_erratum_21_sizes_of_the_last_product(rng):
    h = rng.normal(size=(2 * D + 1, 3))
    operands: Any = ((0, D), (D, 2 * D), (2 * D, 2 * D + 1))
    with pytest.raises(ValueError, match="cannot reshape"):
        mul(h, D, 1, 1, *operands)
    dot = mul(h, 1, D, 1, *operands)
    np.testing.assert_allclose(dot[-1], np.sum(h[:D] * h[D:-1], axis=0), atol=1e-14)
    assert theorem_2(D, LAMBDA).predict(tokens(1)) == pytest.approx(ridge(1), abs=1e-13)


def test_erratum_22_more_than_one_example():
    chain = ridge_chain(D, 2, LAMBDA)
    assert chain.predict(tokens(2)) == pytest.approx(ridge(2), abs=1e-12)
    for moved in ("move A1⁻¹", "move b1"):
        unmoved = with_line(chain, chain.labels.index(moved), Mov(0, 0, "y", "y"))
        assert abs(unmoved.predict(tokens(2)) - ridge(2)) > 0.1

    def depth(algorithm: Any, num_examples: int) -> int:
        return Construction(algorithm, 2, num_examples).arrange().num_layers

    # "at least O(n) layers": fewer than n, and as many for any n.
    assert depth(ScanSGD(ALPHA), 16) == 4 + 2
    assert depth(Newton(8), 4) == depth(Newton(8), 16)


# Position embeddings.


def test_erratum_27_length_of_the_embedding():
    d, p, layers, time, hidden = 4, 9, 9, 9, 300
    codes = 2 * p * (layers + 1)
    assert d + 1 + codes + (hidden - 2 * p * time - 1) == hidden + d + 2 * p
    assert d + 1 + codes + (hidden - (d + 1) - codes) == hidden


def test_erratum_28_first_column_has_no_previous():
    scores = 1e3 * np.eye(4, k=-1)  # qᵢᵀkⱼ = N for j = i − 1; q₁ = N e₀ taken as 0
    assert softmax(scores)[0].tolist() == [1, 0, 0, 0]  # reads itself
    assert softmax(scores, imaginary=True)[0].tolist() == [0.5, 0, 0, 0]
    for code in (OneHot(4), Compact(4)):
        np.testing.assert_array_equal(follow(code, PREVIOUS), np.eye(4, k=-1))


def follow(code: Any, timesteps: Any) -> Matrix:
    """Return the weights of a head of ours."""
    queries, keys = code.scoring(timesteps, 2.0**11)
    units = np.hstack([code.units, np.ones((len(code.units), 1))])
    return softmax(units @ queries.T @ keys @ units.T, imaginary=True)


def test_erratum_29_empty_sets_need_the_imaginary_timestep():
    scores = np.full((4, 4), -1e4)  # q k = −N², but N² at the token t = 3
    scores[:, 2] = 1e4
    assert softmax(scores)[1].tolist() == [0.5, 0.5, 0, 0]  # an average, not nothing
    right = np.zeros((4, 4))
    right[2:, 2] = 1
    np.testing.assert_array_equal(softmax(scores, imaginary=True), right)
    for code in (OneHot(4), Compact(4)):
        np.testing.assert_array_equal(follow(code, Single(2)), right)


def test_erratum_30_no_large_numbers_in_the_embedding(rng):
    x = rng.normal(size=8)

    def error(code: float) -> float:
        return largest(paper_norm_bypass(np.append(x, code), 1e6)[:-1] - x)

    assert error(1.0) < 1e-5
    for code in (1e3, 1e5):  # |x| N_attention / 2N
        assert error(code) == pytest.approx(largest(x) * code / 2e6, rel=0.1)


# GeLU.


def test_erratum_31_taylor_series_of_gelu():
    x = np.array([1e-3])
    for function in (gelu, gelu_tanh):
        rest = function(x) - x / 2
        assert rest / x**2 == pytest.approx(0.398942, abs=1e-6)  # 1/√(2π)
        assert largest(rest - math.sqrt(2 / math.pi) * x**2) > 0.3e-6
        assert function(x) - function(-x) == pytest.approx(x, rel=1e-14)  # no x³


def test_erratum_32_order_of_the_product():
    def error(scale: float, x: float = 1.0, y: float = 0.7) -> float:
        value = paper_product(1.0)(np.array([x / scale]), np.array([y / scale]))
        return float(value[0]) - x * y / scale**2

    assert order(error, 16, 32) == pytest.approx(4, abs=0.01)
    x, y = 1.0, 0.7
    leading = -x * y * (2 * x * x + 3 * x * y + 2 * y * y) / 6
    assert error(32) * 32**4 == pytest.approx(leading, rel=2e-3)
    assert abs(error(8, 1.0, -1.0)) > 1e-5  # x³ + y³ would be 0


def test_erratum_33_factor_of_the_product():
    x, y = np.array([0.03]), np.array([0.05])
    difference = gelu(x + y) - gelu(x) - gelu(y)
    printed, right = math.sqrt(2 / math.pi), 1 / math.sqrt(2 * math.pi)
    assert difference / (2 * printed) == pytest.approx(x * y / 2, rel=5e-3)  # 0.00075
    assert difference / (2 * right) == pytest.approx(x * y, rel=5e-3)  # 0.0015
    assert taylor("gelu")[2] == pytest.approx(right, rel=1e-12)


def test_erratum_34_bypass_keeps_x():
    n, x = 20.0, 0.7

    def tanh(u: float) -> float:
        return math.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3))

    assert n / 2 * (1 + tanh(n)) - n == 0
    assert (n + x) / 2 * (1 + tanh(n + x)) - n == pytest.approx(x, abs=1e-14)


def test_erratum_35_shift_exceeds_every_number():
    x = np.array([-540.0, 3.0])
    assert largest(shift_bypass(x, 512.0) - x) == pytest.approx(540 - 512)
    assert largest(shift_bypass(x, 549.0) - x) < 1e-12
    assert largest(pair_bypass(x) - x) < 1e-12
    # N = 512 is not safe: (x/λ)(x/λ)ᵀ of Theorem 2 alone is 625 at λ = 0.1, x = 2.5.
    chain = theorem_2(1, 0.1)
    example = np.array([[0.0, 2.5], [1.0, 0.0], [0.0, 1.0]])
    row = Layout(chain.registers).start("AuvA")
    assert chain.exact(example)[6][1, row] == pytest.approx(625)


# LayerNorm.


def norm_column(x: Matrix, n: float) -> Matrix:
    """Return √(2/L) N λ([x, N, −N − Σx, 0])."""
    h = np.concatenate([x, [n, -n - x.sum(), 0]])
    return math.sqrt(2 / len(h)) * n * layer_norm(h)


XS = np.array([3.0, -1.0, 2.5, 0.75, 1.57])  # Σx = 6.82


def test_erratum_36_pads_after_layer_norm():
    after = norm_column(XS, 1e6)
    np.testing.assert_allclose(after[-3:-1], [1e6 - 3.41, -1e6 - 3.41], atol=1e-3)
    assert largest(after[-3:-1] - [2e6, -2e6 - 6.82]) > 9e5
    np.testing.assert_allclose(after[:-3], XS, atol=2e-5)


def test_erratum_37_normalized_pad():
    size = len(XS) + 3
    pad = layer_norm(np.concatenate([XS, [1e8, -1e8 - XS.sum(), 0]]))[-3]
    assert pad == pytest.approx(math.sqrt(size / 2), rel=1e-6)
    assert math.sqrt(2 * size) - pad > 1.9  # as printed: twice as large


def test_erratum_38_cross_term_of_the_variance():
    def error(bypass: Callable[..., Matrix]) -> Callable[[float], float]:
        return lambda n: largest(bypass(XS, n) - XS)

    assert error(paper_norm_bypass)(1e3) == pytest.approx(
        largest(XS) * XS.sum() / 2e3, rel=0.01
    )  # 1.0e-2
    assert error(symmetric_norm_bypass)(1e3) < 4e-5
    assert order(error(paper_norm_bypass), 1e3, 1e4) == pytest.approx(1, abs=0.01)
    assert order(error(symmetric_norm_bypass), 1e3, 1e4) == pytest.approx(2, abs=0.01)
    assert order(error(norm_bypass), 1e3, 1e4) == pytest.approx(2, abs=0.01)
    assert largest(norm_bypass(XS) - XS) < 1e-14


def test_erratum_39_layer_norm_sees_the_whole_column():
    rest = np.array([2.0, 4.0, 1.0, 3.0])  # other registers
    for n in (1e6, 1e9):  # Σx of "the part we are interested in": no N helps
        h = np.concatenate([XS, [n, -n - XS.sum()], rest])
        passed = (math.sqrt(2 / len(h)) * n * layer_norm(h))[: len(XS)]
        np.testing.assert_allclose(passed, XS - rest.sum() / len(h), atol=1e-4)
    whole = np.concatenate([XS, rest])
    assert largest(norm_bypass(whole) - whole) < 1e-14


def test_erratum_40_pads_add_up():
    n, h = 1e8, np.concatenate([XS, np.zeros(3)])
    for layer in (1, 2, 3):
        h[-3:-1] += n, -n - XS.sum()
        passed = (math.sqrt(2 / len(h)) * n * layer_norm(h))[: len(XS)]
        np.testing.assert_allclose(passed, (XS - h.mean()) / layer, rtol=1e-6)
        assert (largest(passed - XS) > 0.5) == (layer > 1)


# RAW.


N = 2.0**17  # near the best for products, and enough for all else


def raw_layer(kind: str, misprint: int | None = None) -> dict[str, Matrix]:
    """Return what the layer of app. C.4.3 computes, right but for one misprint.

    W_V, W^F, W_1, b_1, W_2 and b_2 are those of l. 1010-1127, K is {i − 1}, and
    LayerNorm is left out, as there. Every register holds something before.
    """
    rng = np.random.default_rng(0)
    r, s, w, t, a, b, c = (slice(k, k + 2) for k in range(0, 14, 2))
    rows, eye, ones = 16, np.eye(2), np.ones((2, 2))
    h = rng.uniform(-1, 1, (rows, 4))
    w_a, w_s, w_o = rng.uniform(-1, 1, (3, 2, 2))
    read = h @ np.eye(4, k=-1).T  # the first head: K(i) = {i − 1}
    value_1, value_2 = np.zeros((2, rows, rows))
    value_1[t, r] = w_a
    if misprint == 42:
        value_2[t, r] = -1
    else:
        value_2[t, t] = eye
    x = h + value_1 @ read - value_2 @ h  # W^F holds 1 and −1
    w_1, w_2 = np.zeros((2, rows, rows))
    b_1, b_2 = np.full(rows, -N), np.zeros(rows)
    w_1[t, t] = w_1[w, w] = -eye
    b_1[t] = 0 if misprint == 45 else N
    b_1[w] = N
    w_2[t, t] = w_2[w, w] = eye
    b_2[t] = b_2[w] = N if misprint == 47 else -N
    if kind == "+":
        w_1[a, s] = w_s
        w_1[a, t] = ones if misprint == 43 else eye
        b_1[a] = N
        w_2[w, a] = w_o
        b_2[w] -= N * w_o.sum(axis=1)
        if misprint == 48:
            b_2[w] = 0
    else:
        w_1[a, s] = w_s / N
        w_1[a, t] = (ones if misprint == 43 else eye) / N
        w_1[b, t] = eye / N
        w_1[c, s] = (eye if misprint == 44 else w_s) / N
        b_1[a] = b_1[b] = b_1[c] = 0
        factor = N**2 * math.sqrt(math.pi / 2)
        w_2[w, a], w_2[w, b], w_2[w, c] = factor * w_o, -factor * w_o, -factor * w_o
    v = gelu(w_1 @ x + b_1[:, None])
    after = x + w_2 @ v + b_2[:, None]
    average, own = w_a @ read[r], w_s @ h[s]
    expected = h.copy()
    expected[w] = w_o @ (average + own if kind == "+" else average * own)
    expected[t] = 0
    return {
        "h": h,
        "t": x[t],
        "v": v[t],
        "after": after,
        "error": after - expected,
        "on w": after[w] - expected[w],
        "on t": after[t],
        "average": average,
        "own": own,
        "w_o": w_o,
    }


both_kinds = pytest.mark.parametrize("kind", ["+", "⊙"])


@both_kinds
def test_erratum_42_second_head(kind: str):
    assert largest(raw_layer(kind)["error"]) < 1e-8
    printed = raw_layer(kind, 42)
    excess = printed["h"][:2].sum(axis=0) + printed["h"][6:8]  # Σₙ h[rₙ], and old h[t]
    np.testing.assert_allclose(printed["t"] - printed["average"], excess, atol=1e-14)
    assert largest(printed["on w"]) > 0.1


@both_kinds
def test_erratum_43_each_unit_adds_one_number(kind: str):
    assert largest(raw_layer(kind)["error"]) < 1e-8
    off = largest(raw_layer(kind, 43)["on w"])
    assert off > (0.1 if kind == "+" else 0.1 * N)  # ⊙: what N²/2N leaves of it


def test_erratum_44_third_unit_has_w():
    assert largest(raw_layer("⊙")["on w"]) < 1e-8
    assert largest(raw_layer("⊙", 44)["on w"]) > 0.1 * N


def test_erratum_45_bias_of_t():
    printed = raw_layer("⊙", 45)["on t"]  # b₁ = 0, not N: t is left with −N
    assert largest(printed + N) < 3
    assert largest(raw_layer("⊙")["on t"]) < 1e-8


def test_erratum_46_sign_of_v():
    layer = raw_layer("⊙")
    np.testing.assert_allclose(layer["v"], N - layer["t"], atol=1e-9)
    assert largest(layer["v"] - (N + layer["t"])) > 0.1


def test_erratum_47_sign_of_the_last_bias():
    printed = raw_layer("⊙", 47)
    for rows in ("on w", "on t"):
        np.testing.assert_allclose(printed[rows], 2 * N, atol=1e-8)


def test_erratum_48_last_bias_of_w():
    printed = raw_layer("+", 48)
    missing = N * (1 + printed["w_o"].sum(axis=1, keepdims=True))
    np.testing.assert_allclose(printed["on w"] - missing, 0, atol=1e-8)


def test_erratum_49_w_o_acts_on_the_product():
    layer = raw_layer("⊙")
    average, own, w_o = (layer[name] for name in ("average", "own", "w_o"))
    np.testing.assert_allclose(layer["after"][4:6], w_o @ (average * own), atol=1e-8)
    assert largest((w_o @ average) * (w_o @ own) - w_o @ (average * own)) > 0.05


@both_kinds
def test_erratum_50_t_is_cleared(kind: str):
    layer = raw_layer(kind)
    assert largest(layer["on t"]) < 1e-8  # h′ = h is printed for all but w
    assert largest(layer["h"][6:8]) > 0.1


# Division.


def divided_column(y: Matrix, c: float, n: float, m: float) -> Matrix:
    """Return √(2/L) MN λ([Nc, y/M, −Nc − Σy/M, 0])."""
    h = np.concatenate([[n * c], y / m, [-n * c - (y / m).sum(), 0]])
    return math.sqrt(2 / len(h)) * m * n * layer_norm(h)


def test_erratum_51_absolute_value():
    y, c, n, m = XS, -2.0, 1e4, 1e3
    after = divided_column(y, c, n, m)
    np.testing.assert_allclose(after[1:-2], y / 2, atol=1e-6)
    assert largest(after[1:-2] - y / c) > 2.9
    half = y.sum() / 2 / 2
    np.testing.assert_allclose(after[[0, -2]], [-m * n - half, m * n - half], atol=1e-4)
    assert largest(after[0] - m * n) > 1.9 * m * n
    assert largest(division(y, np.array(c)) - y / 2) < 1e-15


def test_erratum_52_variance_before_division():
    y, c, n, m = XS, 2.0, 10.0, 4.0
    h = np.concatenate([[n * c], y / m, [-n * c - y.sum() / m, 0]])
    pads = (n * c) ** 2 + (n * c + y.sum() / m) ** 2
    assert h.var() == pytest.approx((pads + (y @ y) / m**2) / len(h), rel=1e-14)
    assert (pads + (y @ y) / m) / len(h) - h.var() > 0.1


def test_erratum_53_m_is_of_no_use(rng):
    y, c = rng.uniform(-3, 3, (50, 8)), rng.uniform(0.5, 4, 50)
    exact = y / c[:, None]

    def error(n: float, m: float) -> float:
        return largest(paper_division(y, c, n, m) - exact)

    for n, m in ((1e3, 1e2), (1e2, 1e3)):  # λ is free of scale: M is a factor of N
        assert error(n, m) == pytest.approx(error(1e5, 1.0), rel=1e-3)
    assert error(1e9, 1.0) < 2e-7  # and eps·MN of rounding
    assert error(1e9, 1e4) > 1e-5
    assert largest(division(y, c) - exact) < 2e-15

    def error_beside(rest: float, m: float) -> float:
        both = np.append(y[0], m * rest)  # a register that M does not divide
        return largest(divided_column(both, 2.0, 1e4, m)[1:-3] - y[0] / 2)

    expected = largest(y[0] / 2) * 500 / 4e4  # |y/c| |Σ| / 2N|c|, for any M
    assert error_beside(500.0, 1e3) == pytest.approx(expected, rel=0.05)


def test_erratum_54_old_contents_are_divided_too():
    y, old, c, n = np.array([3.0, -1.0]), np.array([5.0, 7.0]), 4.0, 2.0**31
    h = np.concatenate([y, old, [n * c, -n * c, 0]])
    normal = math.sqrt(2 / len(h)) * n * layer_norm(h)
    seen = normal - normal[-1]  # y/|c| and old/|c|: all that W₁ can use
    printed = old - seen[2:4] + seen[:2]
    np.testing.assert_allclose(printed - y / c, old * (1 - 1 / c), atol=1e-12)
    registers = {"y": 2, "c": 1, "w": 2}
    state = np.concatenate([y, [c], old])[None, None]
    after = compute(Div("y", "c", "w"), registers, state, numerics())
    np.testing.assert_allclose(after[0, 0, 3:], y / c, atol=1e-14)


def test_erratum_55_one_n_for_everything(monkeypatch):
    monkeypatch.setattr(stack, "UNROLLED_LAYERS", 0)  # compiles at once
    w, data = np.array([0.5, -1.0, 0.25, 1.5]), example_tokens(4, 1, 9, 1)
    chain = theorem_1(4, w, 1 / 12, 0.1)

    @filter_jit
    def run(model: Transformer, tokens: jax.Array) -> jax.Array:
        return model(tokens).output[..., -1]

    def error(chosen: Numerics) -> float:
        predicted = np.asarray(run(chain.compile(chosen), jnp.asarray(data)))
        return float(np.median(np.abs(predicted - chain.predict(data))))

    def one(n: float) -> Numerics:
        product = paper_product(n / 4)  # of operands up to 4: the scale is N
        return replace(paper_numerics(), product=product, pad=n, bypass=n, gap=n)

    printed = min(error(one(2.0**k)) for k in range(24, 31))
    tuned, ours = error(paper_numerics()), error(numerics())
    assert printed > 3 * tuned > 1e3 * ours
    assert ours < 1e-12


# Other non-linearities.


def test_erratum_57_derivative_of_the_series():
    a, x = taylor("tanh"), 0.1
    slope = 1 - math.tanh(x) ** 2
    right = a[1] + 2 * a[2] * x + 3 * a[3] * x**2
    assert slope == pytest.approx(right, abs=1e-4)
    assert abs(slope - (a[1] + 2 * a[2] * x + 3 * a[3] * x**3)) > 8e-3


def test_erratum_58_third_term_dominates():
    a, x = taylor("tanh"), 0.1
    assert all(abs(a[3] * x**2) > 100 * abs(a[i] * x**i) for i in range(4, 20))


def test_erratum_59_product_from_differences():
    delta = 1e-3
    product, zero = paper_difference(delta), np.zeros(1)
    assert float(product(zero, zero)[0]) == pytest.approx(-(delta**2) / 6, rel=1e-3)
    x, y = 0.1, 0.1
    off = float(product(np.array([x]), np.array([y]))[0]) - x * y
    fourth = -4 / 3 * x * y * (x * x + 1.5 * x * y + y * y)
    assert abs(off) / 0.01 == pytest.approx(0.046, abs=1e-3)
    assert off == pytest.approx(fourth - 2 * delta * x * y * (x + y), rel=0.04)
    # With (f(δ) − f(0))/δ for a₁ the constant is gone.
    small = product(np.array([1e-3]), np.array([2e-3])) - product(zero, zero)
    assert small == pytest.approx(2e-6, rel=0.01)


def test_erratum_60_square_from_relu():
    x = np.linspace(-0.1, 0.1, 20_001)
    printed = sum(
        0.0375 * relu(side) + relu(0.05 * (side - 0.05)) + relu(0.025 * (side - 0.025))
        for side in (x, -x)
    )
    np.testing.assert_allclose(printed, PAPER_SQUARE(x), atol=1e-16)
    assert largest(printed - x**2) == pytest.approx(1.875e-3)  # 19 % at x = 0.1

    def error(knots: tuple[float, ...], weights: tuple[float, ...]) -> float:
        return PiecewiseSquare("", knots, weights, 0.1).error(np.float64)

    knots = PAPER_SQUARE.knots
    assert error(knots, (0.0125, 0.0625, 0.075)) == pytest.approx(0.05**2 / 8)  # 3.1e-4
    # The best knots: flat up to e, then pieces of length √8 e, all off by e² at most.
    e = 0.1 / (1 + 3 * math.sqrt(8))
    first, second, third = best = tuple(e * (1 + k * math.sqrt(8)) for k in range(3))
    weights = (first + second, third - first, 0.1 - second)
    assert error(best, weights) == pytest.approx(e**2, rel=1e-6)  # 1.1e-4
    assert uniform_square(3, 0.1).error(np.float64) == pytest.approx(0.01 / 98)


def test_erratum_61_lanes_of_mul():
    for a, b, c in ((1, 4, 1), (4, 4, 1), (4, 1, 4), (2, 3, 4)):
        layout = Layout({"u": a * b, "v": b * c, "w": a * c})
        product = Mul(a, b, c, "u", "v", "w").raw(layout)
        assert product.num_inner == a * b * c  # |t|, and 4|t| + |w| units


def test_formulas_that_are_right(rng):
    """Eqs. (sgd), Sherman-Morrison and (sherman), √(π/2), and b₂ of RAW(+)."""
    x, y, w, h = X[0], Y[0], W, 1e-5
    losses = [
        [(v @ x - y) ** 2 + LAMBDA * v @ v for v in (w + h * e, w - h * e)]
        for e in np.eye(D)
    ]
    slope = np.array([(high - low) / (2 * h) for high, low in losses])
    np.testing.assert_allclose(W1, w - ALPHA * slope, atol=1e-9)
    a, u, v = rng.normal(size=(D, D)) + 4 * np.eye(D), *rng.normal(size=(2, D))
    inverse = np.linalg.inv(a)
    update = np.outer(inverse @ u, v @ inverse) / (1 + v @ inverse @ u)
    np.testing.assert_allclose(
        np.linalg.inv(a + np.outer(u, v)), inverse - update, atol=1e-12
    )
    rank_one = np.eye(D) / LAMBDA - np.outer(x, x) / LAMBDA**2 / (1 + x @ x / LAMBDA)
    solved = np.linalg.solve(LAMBDA * np.eye(D) + np.outer(x, x), x * y)
    np.testing.assert_allclose(rank_one @ x * y, solved, atol=1e-13)
    assert paper_product(1e4).weight[0] / 1e8 == pytest.approx(math.sqrt(math.pi / 2))


def test_the_page_lists_what_is_checked():
    page = (Path(__file__).parents[2] / "docs" / "errata.md").read_text()
    listed = [int(number) for number in re.findall(r"^\| \**(\d+)\** \|", page, re.M)]
    assert sorted(listed) == list(range(1, 62))
    changing = [int(number) for number in re.findall(r"^\| \*\*(\d+)", page, re.M)]
    named = {int(number) for number in re.findall(r"`erratum_(\d\d)`", page)}
    tests = {int(name[13:15]) for name in globals() if name.startswith("test_erratum_")}
    assert named == tests >= set(changing)
