"""The simulated kubelets and controllers of the cluster."""
