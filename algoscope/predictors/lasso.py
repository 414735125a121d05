"""The lasso: least squares with a penalty on |w|, which makes the weights sparse.

The non-zero weights form the active set A, with signs s, and satisfy
S_AA w_A = b_A − nλ s_A. The search for A adds or drops one coordinate at a time and is
exact after finitely many changes, even for an ill-conditioned X (n < d included), where
coordinate descent needs very many sweeps. Use float64 for small λ and n near d: S has
the squared condition number of X, and in float32 the search may not find A.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from algoscope.foundation.validation import require_positive
from algoscope.predictors.least_squares import (
    Grams,
    Vectors,
    apply,
    prefix_moments,
    prefix_sizes,
)
from algoscope.predictors.protocols import (
    LinearPredictor,
    Number,
    Parametrized,
    name_call,
)

ROUNDING = 10  # in units of d ε
MAX_CHANGES = 20  # of the active set, per coordinate; about 2 is usual


def lasso_weights(
    gram: Grams,
    moment: Vectors,
    num_examples: Float[Array, " prefixes"],
    penalty: Number,
) -> Vectors:
    """Return the minimizer of ‖Y − Xw‖²/2n + λ‖w‖₁ from S = XᵀX, b = XᵀY and n.

    λ is defined as in scikit-learn. The first axis is a batch axis. Derivatives are
    those of w_A = S_AA⁻¹ (b_A − nλ s_A) for constant A and s.
    """
    thresholds = num_examples * penalty
    fixed = jax.lax.stop_gradient((gram, moment, thresholds))
    w, signs = jax.lax.stop_gradient(_search(*fixed))
    rest = moment - apply(gram, w) - thresholds[:, None] * signs
    return w + _solve(fixed[0], signs, rest)


def _solve(gram: Grams, signs: Vectors, right: Vectors) -> Vectors:
    """Return S_AA⁻¹ r_A, and 0 outside of A.

    A tiny ridge penalty keeps the system solvable when columns are dependent: the
    solution is then far away in the direction in which they compensate each other, and
    the search drops one of them.
    """
    dim = gram.shape[1]
    active = signs != 0
    both = active[:, :, None] & active[:, None, :]
    tiny = ROUNDING * dim * jnp.finfo(gram.dtype).eps
    trace = jnp.trace(gram, axis1=1, axis2=2)
    diagonal = jnp.where(active, tiny * trace[:, None], 1)
    matrix = (
        jnp.where(both, gram, 0)
        + diagonal[:, :, None] * jnp.eye(dim, dtype=gram.dtype)[None]
    )
    return jnp.linalg.solve(matrix, jnp.where(active, right, 0)[..., None])[..., 0]


def _search(
    gram: Grams, moment: Vectors, thresholds: Float[Array, " prefixes"]
) -> tuple[Vectors, Vectors]:
    """Return the weights and their signs, 0 where a weight is not in the active set."""
    dim = moment.shape[1]
    limits = thresholds[:, None]
    rounding = ROUNDING * dim * jnp.finfo(moment.dtype).eps
    small = rounding * jnp.max(jnp.abs(moment), axis=1)

    def change(state):
        count, w, signs, _ = state
        goal = _solve(gram, signs, moment - limits * signs)
        # Move toward the goal, but stop where a weight reaches 0, and drop that weight.
        turns = signs * goal < 0
        shares = jnp.where(turns, w / jnp.where(turns, w - goal, 1), jnp.inf)
        share = jnp.min(shares, axis=1, keepdims=True)
        dropped = turns & (shares <= share)
        w = jnp.where(dropped, 0, w + jnp.minimum(share, 1) * (goal - w))
        signs = jnp.where(dropped, 0, signs)
        # At the goal, add the coordinate whose gradient exceeds the penalty most.
        slopes = moment - apply(gram, w)
        excess = jnp.where(signs == 0, jnp.abs(slopes) - limits, 0)
        worst = jnp.argmax(excess, axis=1)
        arrived = ~jnp.any(turns, axis=1)
        grows = arrived & (jnp.max(excess, axis=1) > small)
        added = grows[:, None] & (worst[:, None] == jnp.arange(dim)[None])
        signs = jnp.where(added, jnp.sign(slopes), signs)
        return count + 1, w, signs, jnp.all(arrived & ~grows)

    def unfinished(state):
        count, _, _, finished = state
        return (count < MAX_CHANGES * dim) & ~finished

    zero = jnp.zeros_like(moment)
    start = (0, zero, zero, jnp.zeros((), bool))
    _, w, signs, _ = jax.lax.while_loop(unfinished, change, start)
    return w, signs


def lasso_prefix_weights(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"], *, penalty: Number
) -> Float[Array, "prefixes dim"]:
    """Return the minimizer of ‖Y − Xw‖²/2n + λ‖w‖₁ after each prefix."""
    gram, moment = prefix_moments(x, y)
    return lasso_weights(gram, moment, prefix_sizes(moment), penalty)


def lasso(penalty: float) -> LinearPredictor:
    """Return the lasso with the penalty λ > 0, as scikit-learn defines it.

    Example:
        >>> lasso(0.1).name
        'Lasso(0.1)'
    """
    require_positive("penalty", penalty, "For no penalty, use `ols`.")
    return LinearPredictor(
        name_call("Lasso", penalty), Parametrized(lasso_prefix_weights, penalty=penalty)
    )
