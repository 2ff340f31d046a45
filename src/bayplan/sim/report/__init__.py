"""Outcomes as one self-contained page: tables and plots, nothing from another host."""
