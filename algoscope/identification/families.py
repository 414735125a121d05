"""The families of learning algorithms that `identify` considers.

Variants of one algorithm share a name, such as gradient descent on the mean loss, and
say in `fixed` what is different. Of two families that fit equally well with equally
many parameters, the earlier wins.

To add a family, write its function in `filters`, `passes`, `kernels` or `variants`, and
add an entry to `FAMILIES`. Other packages add theirs as plug-ins, which come last.
"""

import warnings
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint

import numpy as np
from jaxtyping import Float

from algoscope.foundation import plugins
from algoscope.foundation.validation import InvalidValueError
from algoscope.identification import filters, kernels, passes, variants
from algoscope.identification.family import (
    Family,
    Parameter,
    filter_after,
    filter_iterates,
    filtered,
)
from algoscope.identification.prefixes import Prefixes

PENALTY = Parameter("penalty", 1e-6, 1e4)
RIDGE_PENALTY = Parameter("penalty", 1e-6, 1e8)  # to where it equals `zero` or `mean`
SPARSE_PENALTY = Parameter("penalty", 1e-4, 1e1)
RATE = Parameter("learning_rate", 1e-5, 1.0)
MEAN_RATE = Parameter("learning_rate", 1e-3, 2.0)
BANDWIDTH = Parameter("bandwidth", 0.05, 20.0)
SMOOTHING_BANDWIDTH = Parameter("bandwidth", 0.05, 1e3)  # to where it equals `mean`
MOMENTUM = Parameter("momentum", 0.0, 0.99, "linear")
FACTOR = Parameter("factor", 0.05, 3.0)
PENALTY_FROM_ZERO = Parameter("penalty", 0.0, 1e1, "from zero")
INTERCEPT = (("intercept", True),)
MEAN_LOSS = (("loss", "mean"),)

FAMILIES: tuple[Family, ...] = (
    Family("zero", filtered(filters.zero)),
    Family("mean", kernels.mean),
    Family("average", filtered(filters.average)),
    Family("ols", filtered(filters.ols)),
    Family("ols", filtered(filters.ols, intercept=True), fixed=INTERCEPT),
    Family("ridge", filtered(filters.ridge), (RIDGE_PENALTY,)),
    Family(
        "ridge",
        filtered(filters.ridge, intercept=True),
        (RIDGE_PENALTY,),
        fixed=INTERCEPT,
    ),
    Family("ridge", filtered(filters.mean_ridge), (RIDGE_PENALTY,), fixed=MEAN_LOSS),
    Family(
        "optimal_gd",
        filtered(filters.optimal_gd),
        (Parameter("noise_to_prior", 1e-2, 1e3),),
    ),
    Family(
        "knn",
        kernels.neighbors,
        choices=kernels.neighbor_choices,
        tie_breaks=({"latest_first": True},),
    ),
    Family("nadaraya_watson", kernels.nadaraya_watson, (SMOOTHING_BANDWIDTH,)),
    Family("sgd", passes.sgd(power=0.0), (RATE,)),
    Family("sgd", passes.sgd(power=0.0), (RATE, PENALTY_FROM_ZERO)),
    Family("sgd", passes.sgd(), (RATE, Parameter("power", 0.0, 1.0, "linear"))),
    Family("sgd", passes.sgd(power=0.0), (RATE, MOMENTUM)),
    Family(
        "sgd",
        passes.sgd(power=0.0, averaged=True),
        (RATE,),
        fixed=(("averaged", True),),
    ),
    *(
        Family(
            "sgd",
            passes.sgd(power=0.0, epochs=epochs),
            (RATE,),
            fixed=(("epochs", epochs),),
        )
        for epochs in (2, 3, 4, 5)
    ),
    *(
        Family(
            "sgd", passes.sgd(power=0.0, batch=size), (RATE,), fixed=(("batch", size),)
        )
        for size in (2, 4)
    ),
    Family(
        "sgd",
        passes.sgd(power=0.0, intercept=True),
        (RATE, PENALTY_FROM_ZERO),
        fixed=INTERCEPT,
    ),
    Family(
        "sgd",
        passes.sgd(power=0.25, intercept=True),
        (RATE, PENALTY_FROM_ZERO),
        fixed=(*INTERCEPT, ("power", 0.25)),
    ),
    Family("kaczmarz", passes.kaczmarz, (Parameter("learning_rate", 1e-3, 1.99),)),
    Family("gd", iterates=filter_after(filters.gd), parameters=(RATE,)),
    Family(
        "gd",
        iterates=filter_after(filters.gd),
        parameters=(RATE, PENALTY_FROM_ZERO),
    ),
    Family(
        "gd",
        iterates=filter_after(filters.mean_gd),
        parameters=(MEAN_RATE,),
        fixed=MEAN_LOSS,
    ),
    Family("newton", iterates=filter_iterates(filters.newton), max_steps=40),
    Family(
        "conjugate_gradients",
        iterates=filter_iterates(filters.conjugate_gradients),
        max_steps=64,
    ),
    Family("lasso", variants.elastic_net(), (SPARSE_PENALTY,)),
    Family(
        "lasso",
        variants.elastic_net(intercept=True),
        (SPARSE_PENALTY,),
        fixed=INTERCEPT,
    ),
    Family(
        "elastic_net",
        variants.elastic_net(),
        (SPARSE_PENALTY, Parameter("ratio", 0.02, 0.98, "linear")),
    ),
    Family(
        "elastic_net",
        variants.elastic_net(intercept=True),
        (SPARSE_PENALTY, Parameter("ratio", 0.02, 0.98, "linear")),
        fixed=INTERCEPT,
    ),
    Family("total_least_squares", filtered(filters.total_least_squares)),
    Family("huber", variants.huber, (Parameter("delta", 0.01, 10.0),)),
    Family("windowed_ols", variants.windowed_ols, choices=variants.window_choices),
    Family(
        "shrunken",
        filtered(filters.shrunken_ols),
        (FACTOR,),
        fixed=(("algorithm", "ols"),),
    ),
    Family(
        "shrunken",
        filtered(filters.shrunken_ridge),
        (PENALTY, FACTOR),
        fixed=(("algorithm", "ridge"),),
    ),
    Family("rls", passes.rls, (Parameter("forgetting", 0.5, 1.0, "linear"), PENALTY)),
    Family(
        "heavy_ball",
        iterates=filter_iterates(filters.heavy_ball),
        parameters=(RATE, MOMENTUM),
    ),
    Family(
        "nesterov",
        iterates=filter_iterates(filters.nesterov),
        parameters=(RATE, MOMENTUM),
    ),
    Family(
        "gd_plus_plus",
        iterates=filter_iterates(filters.gd_plus_plus),
        parameters=(RATE, Parameter("curvature", 0.0, 0.3, "from zero")),
        max_steps=16,
    ),
    Family(
        "chebyshev",
        iterates=filter_iterates(filters.chebyshev),
        parameters=(Parameter("low", 1e-3, 1.0), Parameter("high", 1.0, 30.0)),
        max_steps=16,
    ),
    Family(
        "adam",
        iterates=passes.adam,
        parameters=(Parameter("learning_rate", 1e-3, 1.0),),
    ),
    Family(
        "bayesian_mixture",
        filtered(filters.bayesian_mixture),
        (Parameter("penalty", 1e-3, 1e2), Parameter("spread", 2.0, 1e4)),
    ),
    *(
        Family(
            "kernel_ridge",
            kernels.kernel_ridge(kernel),
            (*widths, Parameter("penalty", 1e-6, 1e3)),
            fixed=(("kernel", name),),
        )
        for name, kernel, widths in (
            ("rbf", kernels.rbf, (BANDWIDTH,)),
            ("exponential", kernels.exponential, (Parameter("bandwidth", 0.3, 20.0),)),
            ("quadratic", kernels.quadratic, ()),
        )
    ),
    Family("local_linear", kernels.local_linear, (BANDWIDTH,)),
)


def families_with(
    pool: Float[np.ndarray, "tasks dim"] | None, dim: int
) -> tuple[Family, ...]:
    """Return the families, with that of a finite pool of weights if there is one."""
    if pool is None:
        return all_families()
    pool = np.asarray(pool, np.float64)
    if pool.ndim != 2 or len(pool) == 0 or pool.shape[1] != dim:
        rule = f"have shape (tasks, {dim}), with one task or more"
        raise InvalidValueError("pool", rule, f"shape {pool.shape}")
    if not np.isfinite(pool).all():
        raise InvalidValueError("pool", "hold finite numbers", "NaN or infinity")
    bayes = Family(
        "discrete_bayes",
        variants.discrete_bayes(pool),
        (Parameter("noise_variance", 1e-4, 1e2),),
        fixed=(("tasks", len(pool)),),
    )
    return (*all_families(), bayes)


@cache
def all_families() -> tuple[Family, ...]:
    """Return `FAMILIES` and those of plug-ins; a plug-in that fails is left out."""
    found = []
    for plugin in plugins.installed(plugins.FAMILIES):
        try:
            found += _tried(plugin)
        except plugins.PluginError as error:
            warnings.warn(f"{error} It is left out.", stacklevel=2)
    return (*FAMILIES, *found)


def _tried(plugin: EntryPoint) -> list[Family]:
    """Return the families of a plug-in, after each has answered a few questions."""
    loaded = plugins.load_plugin(plugins.FAMILIES, plugin.name)
    families = list(loaded) if isinstance(loaded, Iterable) else [loaded]
    rng = np.random.default_rng(0)
    prefixes = Prefixes(rng.normal(size=(2, 4, 2)), rng.normal(size=(2, 4)))
    for family in families:
        if not isinstance(family, Family):
            why = f"must be a Family or several, got {type(family).__name__}"
            raise plugins.broken(plugin, why)
        points = {p.name: p.value(p.grid(3)) for p in family.parameters}
        steps = {"steps": 2} if family.iterates is not None else {}
        try:
            choice = family.choices(prefixes)[0]
            answers = family.answers(prefixes, points, {**choice, **steps})
        except Exception as error:
            why = f"failed: {plugins.describe(error)}"
            raise plugins.broken(plugin, why) from error
        shape = (3 if points else 1, 2, 4)
        if np.shape(answers) != shape:
            why = f"must return answers of shape {shape}, got {np.shape(answers)}"
            raise plugins.broken(plugin, why)
    return families
