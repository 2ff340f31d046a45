"""THE MAIN PATH: from a pod in the queue to a binding. Start reading at `scheduling_cycle`; `decide` is its heart."""
