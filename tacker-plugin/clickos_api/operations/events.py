# SPDX-License-Identifier: Apache-2.0
"""Why a guest did not start: events that its host noted at Nova.

Nova shows the details of events to administrators by default, since some tell
of the cloud. Those of ``clickos_start`` are written for the tenant, so the
service reads them with its own credentials and shows these only.
"""

from clickos_api.operations import workers

EVENT = 'clickos_start'
#: Actions of a server that are asked for, the newest.
MAX_ACTIONS = 8
_MAX_DETAILS = 4000


class Events:
    """Reads the events of guests, with several requests to Nova for each.

    :param cloud: ownership.Cloud
    :param bulkhead: workers.Bulkhead, the seats of HTTP's threads
    """

    def __init__(self, cloud, bulkhead):
        self._cloud = cloud
        self._bulkhead = bulkhead

    def of(self, server):
        """List the reboots and failed starts of a guest, the newest first.

        The requests of a project take turns, as those to a guest do.

        :param server: ownership.Server
        """
        place = workers.Place(server.project_id, server.project_id,
                              'events of project')
        with self._bulkhead.read(place):
            return self._of(server)

    def _of(self, server):
        found = []
        for action in self._cloud.actions(server.id)[:MAX_ACTIONS]:
            events = self._cloud.events(server.id, action['request_id'])
            found += [_shown(action, event) for event in events
                      if event.get('event') == EVENT]
        return found


def _shown(action, event):
    return {'request_id': action['request_id'], 'action': action['action'],
            'result': event.get('result'),
            'finished_at': event.get('finish_time'),
            'details': (event.get('details') or '')[:_MAX_DETAILS]}
