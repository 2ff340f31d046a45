"""Simulated controllers: the parts of kube-controller-manager that scheduling depends on.

Each controller reconciles one kind (pods of a ReplicaSet, status of a budget, …), can be stopped and started on
its own, and works through the same write path as any client.
"""
