# SPDX-License-Identifier: Apache-2.0
"""The contract of the control sockets, which the types in Rust write."""

import json
import pathlib

_FILE = pathlib.Path(__file__).with_name('contract.json')
#: Verbs by name for each daemon, the sizes that they share, and all types.
CONTRACT = json.loads(_FILE.read_text())


def schema(daemon, verb, part):
    """Return the JSON Schema (draft 7) of a verb's ``args`` or ``answer``.

    The library fastjsonschema compiles it, with ``use_default=False``.
    """
    return {**CONTRACT[daemon][verb][part], '$defs': _DEFS}


def draft7(schema):
    """Return a schema with the types of tuples as draft 7 has them."""
    if isinstance(schema, list):
        return [draft7(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {'items' if key == 'prefixItems' else key: draft7(value)
            for key, value in schema.items()}


_DEFS = draft7(CONTRACT['$defs'])
