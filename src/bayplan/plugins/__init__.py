"""The plugins that come with Bayplan.

`intree` and `community` list one plugin per entry: a file, or a folder with the plugin and its parts. What several
plugins need has a module of its own beside the two lists. `shipped` names the community plugins for the registry.
"""
