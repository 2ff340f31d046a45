"""The cluster as the scheduler knows it, in columns over NumPy.

One row a node, the same row in every column. The columns are live: `bayplan.cache` changes them in place between two
decisions and never during one; plugins only read. Change logs list the rows that changed, so that a remembered answer
is computed again for those alone. `docs/decisions/0008-live-columns.md` explains why there is no frozen copy.
"""
