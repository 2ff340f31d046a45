"""COLUMNS: the cluster frozen for one cycle, struct-of-arrays over NumPy.

One row a node, the same row in every column. Plugins read; only `bayplan.cache` writes. Between two decisions the
columns change in place and the change log says which rows, so that whoever remembers an answer can mend it instead of
computing it again.
"""
