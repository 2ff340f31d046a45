"""End-to-end tests against the real control plane (see tests/controlplane)."""
