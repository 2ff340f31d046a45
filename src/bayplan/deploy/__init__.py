"""Manifests, RBAC rules, CRDs and a Helm chart, all derived from what the enabled plugins declare.

Settings become documents, which `bayplan render` prints; only `doctor` reads from a cluster.
"""
