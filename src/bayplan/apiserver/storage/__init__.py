"""Objects as bytes: revisions, history, and the data directory that keeps them across restarts."""
