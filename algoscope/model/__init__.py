"""The transformer, and the in-context learner that it is (paper §2).

Here are the choices that make up an architecture, apart from its sizes (§2.1, app. D).
To add one, name it here and write its forward pass in `layer.py`. Nothing here imports
JAX, so that the command line can show and check the choices at once.
"""

from typing import Literal

BlockKind = Literal["pre_norm", "paper"]
Activation = Literal[
    "gelu", "gelu_tanh", "relu", "tanh", "silu", "softplus", "sigmoid", "squared_relu"
]
Initialization = Literal["uniform_scaling", "normal"]
