"""Training in-context learners (paper §2.2, §4.2, app. D)."""
