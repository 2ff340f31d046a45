"""Preemption: which pods would have to be evicted for a pod to fit, on which node, and at what price.

A toolkit for plugins that evict, built on the contract. `search` tries nodes, with one of two trials: `node_trial`
moves pods on one node and runs every filter, `column_trial` moves pods on many nodes at once where filters read counts
only. `candidates` compares what was found, `eviction` carries it out.
"""
