"""The pytest plugin of the kit; loaded by pytest through its entry point."""
