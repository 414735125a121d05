"""The choices that make up an architecture, apart from its sizes (paper §2.1, app. D).

Nothing here imports JAX, so that the command line can show and check them at once.
"""

from typing import Literal

BlockKind = Literal["pre_norm", "paper"]
Activation = Literal[
    "gelu", "gelu_tanh", "relu", "tanh", "silu", "softplus", "sigmoid", "squared_relu"
]
Initialization = Literal["uniform_scaling", "normal"]
