"""An ID's life, module by module; `msgid` itself exports the public names.

The values are in `msgid.ids.message_id` and `msgid.ids.v0`. `msgid.ids.parsing` reads one ID, `msgid.ids.bulk` many.
`msgid.ids.generator` makes new IDs, on the node that `msgid.ids.node` chooses, and `msgid.ids.batch` writes many at
once. `msgid.ids.derived` makes IDs from a position or a parent. The compiled core is in `msgid.ids._native`.
"""
