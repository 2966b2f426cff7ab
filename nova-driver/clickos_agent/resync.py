# SPDX-License-Identifier: Apache-2.0
"""Threads that compare the host with Neutron, and those that wake them."""

import threading
import time

from cosmos_client import CosmosError
from oslo_log import log as logging

from clickos_agent import ports

LOG = logging.getLogger(__name__)

#: Kinds of events of cosmosd: of guests, and of parts of the host.
_OF_GUESTS, HOST = ('state', 'died'), 'host'
#: Seconds until the next try to subscribe to cosmosd's events.
_RETRY_S = 2
#: Seconds between a hint and the call, so that one call serves many hints.
_REST_S = 0.1


class ResyncLoop:
    """Calls a function periodically, and soon after trigger()."""

    def __init__(self, name, run_once, interval_s):
        """Call a function.

        :param name: what the function compares, for the log.
        :param run_once: returns seconds to the next call, None for the usual
            ones. It raises CosmosError or ports.NeutronUnavailable when it
            changes nothing.
        :param interval_s: seconds between two calls.
        """
        self._name = name
        self._run_once = run_once
        self._interval_s = interval_s
        self._hinted = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        name=name)

    def start(self):
        """Call the function now and from then on."""
        self._thread.start()

    def stop(self):
        """End after the call that is under way."""
        self._stopping = True
        self._hinted.set()

    def wait(self):
        """Wait for the end after stop()."""
        self._thread.join()

    def trigger(self):
        """Let the next call be soon; does not wait."""
        self._hinted.set()

    def _run(self):
        while not self._stopping:
            self._hinted.clear()
            pause_s = None
            try:
                pause_s = self._run_once()
            except (ports.NeutronUnavailable, CosmosError) as e:
                LOG.warning('The %(name)s of the switch stay as they are: '
                            '%(why)s', {'name': self._name, 'why': e})
            except Exception:
                LOG.exception('Looking at %s failed', self._name)
            pause_s = pause_s or self._interval_s
            if self._hinted.wait(pause_s) and not self._stopping:
                time.sleep(_REST_S)


class EventTrigger:
    """Hints when a router changes its state, a guest dies, valed is back."""

    def __init__(self, client, hint):
        """Follow cosmosd's events.

        :param client: CosmosClient
        :param hint: called with the kind of such an event, and with HOST
            after each subscription.
        """
        self._client = client
        self._hint = hint
        self._stopped = threading.Event()
        self._stream = None
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        name='starts')

    def start(self):
        """Follow from now on."""
        self._thread.start()

    def stop(self):
        """End the thread."""
        self._stopped.set()
        if self._stream is not None:
            self._stream.close()

    def wait(self):
        """Wait for the end after stop()."""
        self._thread.join()

    def _run(self):
        while not self._stopped.is_set():
            try:
                with self._client.events() as self._stream:
                    self._follow()
            except CosmosError as e:
                LOG.warning('No events from cosmosd: %s', e)
            self._stopped.wait(_RETRY_S)

    def _follow(self):
        self._hint(HOST)
        if self._stopped.is_set():  # stop() came before the stream was there
            return
        for event in self._stream:
            if event['event'] in (*_OF_GUESTS, HOST):
                self._hint(event['event'])
