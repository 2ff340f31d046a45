"""The API client: the only package that sends HTTP requests to an API server.

    kubeconfig.find_access ──▶ ClusterAccess ──▶ HttpTransport ──┐        (rate_limit may stand in between)
                                                                 ▼
                                                             Transport ◀── the embedded API server fits here too
                                              ┌──────────────────┼───────────────────┐
                                              ▼                  ▼                   ▼
                                          Reflector           Writer           EventRecorder
                                     (old, new) changes   bind, patch, …     behind the bindings

`errors` draws the tree of what can go wrong. Everything that waits or uses randomness takes a `Clock` and a `draw`
function.
"""
