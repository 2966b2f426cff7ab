# SPDX-License-Identifier: Apache-2.0
"""Follows cosmosd's events, so that Nova sees a dead guest at once."""

import threading

from cosmos_client import CosmosError
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

FIRST_DELAY_S = 0.5
MAX_DELAY_S = 30


class EventFollower:
    """One thread that stays subscribed, across restarts of cosmosd."""

    def __init__(self, client, on_died, on_connected, on_lost, on_faults,
                 on_guest):
        """Remember whom to call; the calls come from the thread.

        :param client: CosmosClient
        :param on_died: called with a guest's UUID and the reason.
        :param on_connected: called after each subscription; what happened
            before it is in cosmosd's list only.
        :param on_lost: called with the reason when cosmosd is away, once
            until the next on_connected.
        :param on_faults: called with the daemons of the host that do not
            answer, as of the verb ``host``, after that changed.
        :param on_guest: called with a guest's UUID and its state, after that
            changed.
        """
        self._client = client
        self._on_died = on_died
        self._on_connected = on_connected
        self._on_lost = on_lost
        self._on_faults = on_faults
        self._on_guest = on_guest
        self._stop = threading.Event()
        self._stream = None
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        name='cosmosd-events')

    def start(self):
        """Start the thread; call it once."""
        self._thread.start()

    def stop(self):
        """End the thread and wait for it; may be called twice."""
        self._stop.set()
        if self._stream is not None:
            self._stream.close()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self):
        lost = False
        delay_s = FIRST_DELAY_S
        while not self._stop.is_set():
            try:
                with self._client.events() as self._stream:
                    lost, delay_s = False, FIRST_DELAY_S
                    self._call(self._on_connected)
                    self._follow()
            except CosmosError as e:
                if not lost and not self._stop.is_set():
                    LOG.warning('No events from cosmosd: %s', e)
                    self._call(self._on_lost, e.message)
                lost = True
            self._stop.wait(delay_s)
            delay_s = min(delay_s * 2, MAX_DELAY_S)

    def _follow(self):
        if self._stop.is_set():  # stop() came before the stream was there
            return
        for event in self._stream:
            if event['event'] == 'died':
                self._call(self._on_died, event['data'].get('uuid'),
                           event['data'].get('reason'))
            elif event['event'] == 'host':
                self._call(self._on_faults, event['data'].get('faults'))
            elif event['event'] == 'guest':
                self._call(self._on_guest, event['data'].get('uuid'),
                           event['data'].get('state'))

    def _call(self, callback, *args):
        """Call back; whatever fails there must not end the thread."""
        try:
            callback(*args)
        except Exception:
            LOG.exception('Handling an event of cosmosd failed')
