"""The serving cache: an HTTP proxy that answers from copies.

Bytes come in at `protocol`, which lets nothing ambiguous through (`request`). `routes` says which page is meant and at
which origin; `service` decides: answer from the `cache`, ask whether the copy still holds, or fetch. What HTTP says of
that is in pure modules: `directives`, `dates`, `rules` (RFC 9111), `vary`, `conditions`. `belief` is our own policy in
place of the origin's lifetimes. `origins` asks; `filling` is an answer that many read while it still arrives;
`evidence` tells the runner what was asked for.
"""
