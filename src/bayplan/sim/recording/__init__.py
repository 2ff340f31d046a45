"""Recordings: what a scheduler or a follower saw of a cluster, in order, and how it is replayed."""
