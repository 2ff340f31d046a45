"""The engine that calls plugins: one seam for all calls, remembered columns, and the incremental evaluation."""
