"""The real scheduler on a cluster in the same process: behind `bayplan up`, the demo and tests.

It is the scheduler of `app` on another transport and, in tests, another clock.
"""
