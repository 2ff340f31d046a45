"""How a Kubernetes API server behaves, asked of two: the embedded one and the real kube-apiserver.

Every test here runs against both with the same expectations. What only one of them does is not tested here.
"""
