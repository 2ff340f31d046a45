"""Every parser that takes input from outside, with mutated input: `python -m tests.fuzz --help`."""
