"""Simulated controllers: what kube-controller-manager does, just enough to be honest.

Each controller keeps one promise (a ReplicaSet has its pods, a budget its status, …), can be stopped and started on
its own, and works through the same write path as any client.
"""
