"""DEPLOYING: manifests, RBAC, CRDs and chart, all derived from what the enabled plugins declare.

Nothing here talks to a cluster; it turns settings into documents. `bayplan render` prints them.
"""
