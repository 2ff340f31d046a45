"""Plugins that other people described, one file each: the proof that the public contract is enough.

Nothing here imports the engine. `bayplan.plugins.shipped` lists them by name for the registry.
"""
