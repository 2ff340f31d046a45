"""WIRING: from a configuration to a scheduler that works, in one visible order."""
