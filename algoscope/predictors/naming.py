"""Names of predictors: the call that builds them, as in the legend of figure 1."""


def name_call(family: str, *values: object, **options: object) -> str:
    """Return the name of a predictor; an option of None is left out.

    Example:
        >>> name_call("GD", 0.02), name_call("GD", 0.02, steps=8, penalty=None)
        ('GD(0.02)', 'GD(0.02, steps=8)')
        >>> name_call("OLS")
        'OLS'
    """
    words = [_word(value) for value in values]
    words += [f"{key}={_word(v)}" for key, v in options.items() if v is not None]
    return f"{family}({', '.join(words)})" if words else family


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)
