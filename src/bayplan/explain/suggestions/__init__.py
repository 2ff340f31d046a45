"""Suggestions: what would let a pod run or move it, each tried before it is given, with the commands that do it."""
