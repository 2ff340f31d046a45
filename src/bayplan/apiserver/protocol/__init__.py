"""The wire format: JSON, Status errors, requests and answers, identities, selectors, quantities. Knows no kind."""
