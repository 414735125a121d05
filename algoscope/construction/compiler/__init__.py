"""From programs to the weights of a transformer."""
