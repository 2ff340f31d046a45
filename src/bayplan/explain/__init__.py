"""Why: what was decided and what holds now, in sentences, tables and JSON.

From the record of an attempt to what somebody reads:

    builders ──▶ claims ──▶ model ──▶ terminal, pages, http        what an explanation asserts, and how it is shown
       ▲                      ▲
    views (now)          suggestions ──▶ whatif                    what would change it, tried on a copy of the cluster

`service` answers every question about a running scheduler, `offline` those about files; `wiring` is what a scheduler's
process carries of this room. Every sentence is made of one claim, and `tests/truth` puts all kinds of claims to the
test.
"""
