# SPDX-License-Identifier: Apache-2.0
"""Why a guest did not start: events that its host noted at Nova.

Nova shows the details of events to administrators by default, since some tell
of the cloud. Those of ``clickos_start`` are written for the tenant, so the
service reads them with its own credentials and shows these only.
"""

EVENT = 'clickos_start'
#: Actions of a server that are asked for, the newest.
MAX_ACTIONS = 8
_MAX_DETAILS = 4000


def of(cloud, server):
    """List the reboots and failed starts of a guest, the newest first.

    :param cloud: ownership.Cloud
    :param server: ownership.Server
    """
    found = []
    for action in cloud.actions(server.id)[:MAX_ACTIONS]:
        events = cloud.events(server.id, action['request_id'])
        found += [_shown(action, event) for event in events
                  if event.get('event') == EVENT]
    return found


def _shown(action, event):
    return {'request_id': action['request_id'], 'action': action['action'],
            'result': event.get('result'),
            'finished_at': event.get('finish_time'),
            'details': (event.get('details') or '')[:_MAX_DETAILS]}
