"""Faults of all kinds in random order, with two replicas and mixed workloads; `python -m tests.chaos --help`."""
