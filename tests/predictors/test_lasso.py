"""The lasso is scikit-learn's, at every prefix, and can be differentiated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import Lasso
from support.textbook import wide_datasets

from algoscope.predictors.lasso import lasso_prefix_weights

lasso_batch = jax.jit(
    jax.vmap(
        lambda x, y, penalty: lasso_prefix_weights(x, y, penalty=penalty),
        in_axes=(0, 0, None),
    )
)


@pytest.mark.parametrize("penalty", [0.01, 0.1, 0.5])
def test_the_lasso_is_that_of_scikit_learn(penalty):
    x, y = wide_datasets()
    weights = np.asarray(lasso_batch(x, y, penalty))
    theirs = Lasso(penalty, fit_intercept=False, tol=1e-10, max_iter=10**6)
    for i in range(len(x)):
        for n in (1, 2, 5, 8, 9, 14):
            expected = theirs.fit(x[i, :n], y[i, :n]).coef_
            np.testing.assert_allclose(weights[i, n], expected, atol=1e-6)


def test_a_derivative_of_the_lasso_is_a_difference_quotient():
    x, y = wide_datasets()

    @jax.jit
    def slope(penalty):
        def sizes(penalty):
            w = lasso_prefix_weights(
                jnp.asarray(x[0]), jnp.asarray(y[0]), penalty=penalty
            )
            return jnp.sum(w**2)

        return sizes(penalty), jax.grad(sizes)(penalty)

    (up, _), (down, _) = slope(0.1 + 1e-6), slope(0.1 - 1e-6)
    np.testing.assert_allclose(slope(0.1)[1], (up - down) / 2e-6, rtol=1e-5)
