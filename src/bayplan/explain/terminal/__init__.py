"""Explanations as text and tables on a terminal."""
