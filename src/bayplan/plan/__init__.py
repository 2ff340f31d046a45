"""Plans that a person carries out: nodes to buy, nodes to empty, pods to move. Nothing here changes a cluster."""
