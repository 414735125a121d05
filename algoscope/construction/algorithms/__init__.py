"""Learning algorithms as short programs, under the names that a user can type."""

from algoscope.construction.algorithms.algorithm import Algorithm
from algoscope.construction.algorithms.attention import (
    AttentionGD,
    LogisticSGD,
    NadarayaWatson,
)
from algoscope.construction.algorithms.recursive import (
    RLS,
    MinimumNorm,
    OneExampleRidge,
    Ridge,
)
from algoscope.construction.algorithms.solvers import ConjugateGradients, Newton
from algoscope.construction.algorithms.statistics import GD, Chebyshev, HeavyBall
from algoscope.construction.algorithms.stochastic import (
    SGD,
    Kaczmarz,
    LoopedSGD,
    ScanSGD,
)

ALGORITHMS: dict[str, type[Algorithm]] = {
    kind.name: kind
    for kind in (
        SGD,
        LoopedSGD,
        ScanSGD,
        Ridge,
        OneExampleRidge,
        RLS,
        MinimumNorm,
        GD,
        HeavyBall,
        Chebyshev,
        Newton,
        ConjugateGradients,
        Kaczmarz,
        AttentionGD,
        NadarayaWatson,
        LogisticSGD,
    )
}

__all__ = [
    "ALGORITHMS",
    "GD",
    "RLS",
    "SGD",
    "Algorithm",
    "AttentionGD",
    "Chebyshev",
    "ConjugateGradients",
    "HeavyBall",
    "Kaczmarz",
    "LogisticSGD",
    "LoopedSGD",
    "MinimumNorm",
    "NadarayaWatson",
    "Newton",
    "OneExampleRidge",
    "Ridge",
    "ScanSGD",
]
