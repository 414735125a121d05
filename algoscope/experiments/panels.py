"""Whom learners are compared with: the paper's references, and those of later papers.

An iterative solver that has not converged resembles ridge regression, and the best step
of gradient descent shrinks with n; so "closest to ridge", and "far from GD(0.01)", say
little alone. The wider panel holds, beside the paper's references, the best single step
(`optimal_gd`), k steps at their best rate, and Newton's iteration (Fu et al., 2023).
"""

from dataclasses import dataclass

from algoscope.predictors import (
    Predictor,
    conjugate_gradients,
    figure_1_references,
    newton,
    optimal_gd,
    tuned_gd,
)
from algoscope.tasks import LinearRegression


@dataclass(frozen=True)
class Wider:
    """The sizes of the wider panel."""

    gd_steps: tuple[int, ...] = (2, 4, 8, 16)
    newton_steps: tuple[int, ...] = (2, 4, 6, 8, 10, 12, 16)
    gradients: tuple[int, ...] = (2, 4)  # steps of conjugate gradients
    num_tuning: int = 500  # datasets to find the best rates on


def later_references(
    task: LinearRegression, num_examples: int, sizes: Wider
) -> tuple[Predictor, ...]:
    """Return the references that later papers add."""
    return (
        optimal_gd(task.noise_variance / task.prior_variance),
        *(
            tuned_gd(task, steps, num_examples, num_datasets=sizes.num_tuning)
            for steps in sizes.gd_steps
        ),
        *map(newton, sizes.newton_steps),
        *map(conjugate_gradients, sizes.gradients),
    )


def paper_names() -> tuple[str, ...]:
    """Return the names of the paper's references."""
    return tuple(reference.name for reference in figure_1_references())


FAMILIES = {
    "OLS": "OLS",
    "Ridge": "ridge",
    "GD": "gradient descent",
    "SGD": "gradient descent",
    "OptimalGD": "gradient descent",
    "KNN": "nearest neighbors",
    "Newton": "Newton",
    "ConjugateGradients": "conjugate gradients",
}


def family(name: str) -> str:
    """Return the family of a reference by its name.

    Example:
        >>> family("Ridge(0.1)"), family("GD(0.01, steps=4)"), family("OLS")
        ('ridge', 'gradient descent', 'OLS')
    """
    return FAMILIES.get(name.split("(")[0], name)
