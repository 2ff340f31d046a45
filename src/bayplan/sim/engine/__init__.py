"""The scheduler's core on a virtual clock: what happens, when, and to which objects."""
