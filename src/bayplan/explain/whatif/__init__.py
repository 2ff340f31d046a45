"""Trying things on a copy of the cluster: edits, pods placed one after the other, what-ifs."""
