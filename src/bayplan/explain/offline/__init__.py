"""Clusters and pods from files, evaluated without an API server: `bayplan evaluate` and case files."""
