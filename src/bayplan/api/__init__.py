"""The Kubernetes objects that scheduling reads, as slim typed structs, and the rules that belong to them.

No I/O and no state. Quantities, selectors, tolerations and pod requests follow the rules of Kubernetes exactly.
"""
