"""Controllers of the companion plugins: the status of PodGroups and ElasticQuotas. They schedule nothing."""
