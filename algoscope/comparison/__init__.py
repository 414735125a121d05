"""How near a learner is to textbook algorithms (paper §4.1)."""
