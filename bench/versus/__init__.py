"""Side by side with kube-scheduler, on one real API server: `python -m bench.versus`, `make bench`."""
