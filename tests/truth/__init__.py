"""The proof that explanations are true: generated clusters, every claim executed on an embedded cluster."""
