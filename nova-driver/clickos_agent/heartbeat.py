# SPDX-License-Identifier: Apache-2.0
"""Reports the agent to Neutron, which binds ports of live agents' hosts."""

import threading

from cosmos_client import CosmosError
from oslo_log import log as logging

from clickos_agent import ports

LOG = logging.getLogger(__name__)

#: Seconds until the next try after Neutron gave no answer.
_RETRY_S = 2


class Heartbeat:
    """Reports now and again, in a thread of its own."""

    def __init__(self, neutron, interval_s, links, load, installed=dict):
        """Report to Neutron.

        :param neutron: ports.Neutron
        :param interval_s: seconds between two reports.
        :param links: dict tunnel_ip, interfaces of this host.
        :param load: load.Load
        :param installed: returns a dict of what runs on this host
        """
        self._neutron = neutron
        self._interval_s = interval_s
        self._links = links
        self._load = load
        self._installed = installed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        name='heartbeat')

    def start(self):
        """Report at once, and from then on."""
        self._thread.start()

    def stop(self):
        """End after the report that is under way."""
        self._stopped.set()

    def wait(self):
        """Wait for the end after stop()."""
        self._thread.join()

    def _run(self):
        is_first, pause_s = True, 0
        while not self._stopped.wait(pause_s):
            pause_s = self._interval_s
            try:
                self._neutron.report_state(
                    is_first, {**self._links, **self._installed()},
                    self._load.measure())
                is_first = False
            except ports.NeutronUnavailable as e:
                pause_s = min(_RETRY_S, self._interval_s)
                LOG.warning('Neutron got no report of this agent: %s', e)
            except Exception:
                LOG.exception('Neutron got no report of this agent')


def installed(client):
    """Return a function that says what runs on the host of a cosmosd.

    :param client: CosmosClient
    """
    def ask():
        try:
            host = client.call('host')
        except CosmosError:
            return {}
        return {'cosmosd': host['version'], 'host_kind': host['host_kind'],
                'engine_sha256': host['engine_sha256']}
    return ask
