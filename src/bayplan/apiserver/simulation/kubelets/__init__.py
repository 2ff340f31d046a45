"""Simulated kubelets: nodes that report, and pods that start, run, finish and stop on them."""
