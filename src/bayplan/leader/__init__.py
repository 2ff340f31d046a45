"""Leader election: of several replicas, one schedules. Start reading at `election`."""
