"""Scenarios of the companion plugins, told once and played on the embedded cluster and on a real API server."""
