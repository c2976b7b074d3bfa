"""Descent over sample weights: one loop, step rules and updates as values."""
