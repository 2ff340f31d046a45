"""VICTIMS: which pods would have to leave for a pod to fit, on which node, and at what price."""
