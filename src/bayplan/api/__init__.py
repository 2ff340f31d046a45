"""WORDS: the Kubernetes objects that scheduling reads, as slim typed structs, and the rules that belong to them.

No I/O and no state. Everything here is a view of what the API server said: quantities, selectors, tolerations and
pod requests follow the Kubernetes rules to the letter.
"""
