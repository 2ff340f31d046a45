"""The real scheduler on a cluster in the same process: behind `bayplan up`, the demo and tests.

There is no second scheduler to keep honest: `sim` runs `app` on another transport and, where asked, another clock.
"""
