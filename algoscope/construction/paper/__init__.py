"""The constructions of the paper, line by line (§3, app. A-C)."""
