"""Plugins that other people described, one file or folder each: the proof that the public contract is enough.

Nothing here imports the engine. `bayplan.plugins.shipped` lists them by name for the registry.
"""
