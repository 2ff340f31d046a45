"""WHY: what was decided and why, in words, tables and machine form."""
