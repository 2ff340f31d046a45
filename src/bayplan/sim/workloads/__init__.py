"""Where the pods of a simulation come from, when they arrive and how long they run."""
