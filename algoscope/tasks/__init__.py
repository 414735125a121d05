"""Distributions over regression problems (paper §2.3, §4.2)."""
