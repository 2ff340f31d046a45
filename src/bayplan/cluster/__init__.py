"""COLUMNS: the cluster as the scheduler knows it, struct-of-arrays over NumPy.

One row a node, the same row in every column. The columns are live: `bayplan.cache` changes them in place between two
decisions and never during one; plugins only read. The change log says which rows changed, so that a remembered answer
can be repaired instead of computed again. `docs/decisions/0008-live-columns.md` says why there is no frozen copy.
"""
