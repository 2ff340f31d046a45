"""What a cluster has beside its API server: kubelets and controllers, simulated."""
