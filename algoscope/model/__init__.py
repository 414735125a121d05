"""The transformer, and the in-context learner that it is (paper §2)."""
