# SPDX-License-Identifier: Apache-2.0
"""Keys of desired states in the database.

A server's own state and the states of a project have separate key spaces.
The project is part of the key, so no id reaches a state of another project.
"""

_SERVER, _STATE = 'server', 'state'
#: The beginning of the keys to which user_data refers.
REFERENCES = f'{_STATE}:'
#: Characters of a UUID, which ends each key.
_ID = 36
#: Of the longest key: a project's id has 64 characters.
LENGTH = len(_STATE) + 1 + 64 + 1 + _ID


def of_server(server_id):
    """Return the key of the state of a server without a reference."""
    return f'{_SERVER}:{server_id}'


def of_state(project_id, state_id):
    """Return the key of a state that user_data of a project refers to."""
    return f'{_STATE}:{project_id}:{state_id}'


def is_reference(key):
    """Return whether user_data refers to the state."""
    return key.startswith(REFERENCES)


def name(key):
    """Return the UUID of a key, for messages and logs."""
    return key[-_ID:]
