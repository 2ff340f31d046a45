"""The command tree. `main` lists the commands; each has a module of its own, imported when it runs."""
