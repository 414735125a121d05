"""The language in which learning algorithms are written as programs."""
