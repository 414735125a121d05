"""What a probe finds without a learning algorithm to find it in (paper §5, app. E).

The paper's control is a model trained where w is always 1, such as `control-d4`, and
probed on random w. An untrained network and the input layer are two more: what a probe
reaches there, it computed itself.
"""

from algoscope.initialization import random_transformer
from algoscope.learner import InContextLearner


def untrained(learner: InContextLearner, seed: int = 0) -> InContextLearner:
    """Return a learner of the same shape with random weights.

    Example:
        >>> untrained(InContextLearner.from_pretrained("linear-d2")).name
        'linear-d2, untrained'
    """
    transformer = learner.transformer
    _, num_heads, _, hidden_size = transformer.layers.w_q.shape
    return InContextLearner(
        random_transformer(
            seed,
            token_size=transformer.token_size,
            max_time=transformer.max_time,
            num_layers=transformer.num_layers,
            hidden_size=hidden_size,
            num_heads=num_heads,
            inner_size=transformer.layers.w_2.shape[1],
            block=transformer.block,
        ),
        f"{learner.name}, untrained",
    )
