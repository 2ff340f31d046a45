"""Benchmarks. Each module runs by itself: `python -m bench.decide`, `python -m bench.memory`."""
