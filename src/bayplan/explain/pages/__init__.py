"""What the pages of the dashboard and `bayplan top` list: pods, decisions, preemptions, nodes, figures over time.

Every answer is bounded: a page of rows and some counts, whatever the cluster. What reads all pods or all records is a
generator that pauses often (`bayplan.observe.time_slices`), so that scheduling goes on meanwhile.
"""
