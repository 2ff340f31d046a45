"""The embedded cluster: a small Kubernetes API server with simulated kubelets and controllers.

`cluster.EmbeddedCluster` is the way in; `server.api.Api` is where to start reading; README.md is the map.
"""
