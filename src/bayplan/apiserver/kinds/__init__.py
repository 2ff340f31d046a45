"""What the server knows about kinds: the table of kinds, their types, defaults, admission, validation and columns."""
