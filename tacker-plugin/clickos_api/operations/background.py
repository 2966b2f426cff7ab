# SPDX-License-Identifier: Apache-2.0
"""What the service does without a request: verdicts, shares, old states.

Every process of the WSGI server does it. Two that do it at once do no harm:
verdicts and deletions may come twice, and rounds of shares take turns.
"""

from concurrent import futures
import datetime
import random
import threading
import time

from clickos_client import timing
from oslo_log import log as logging

from clickos_api import errors
from clickos_api import metrics
from clickos_api.outside import ownership
from clickos_api.state import desired_state
from clickos_api.state import history
from clickos_api.state import keys

LOG = logging.getLogger(__name__)

#: Seconds that a change may take besides its RPC; then the agent is late.
_MARGIN_S = 1
#: Hosts that are asked for verdicts at a time, states that are looked at
#: together, and requests without an answer after which their others wait.
_HOSTS, _STATES, _SILENT = 16, 500, 2
#: A guest that does not exist takes no change of this age. Its next start has
#: a higher number.
_LOST_S = 60
#: A state to which user_data refers survives its server for this time, in
#: which a heal makes the next server.
_ORPHAN_GRACE_S = 86400
#: The agent's words for a server without a guest on its host.
_NO_GUEST = {'no-such-guest'}


class Background:
    """The threads of one process.

    :param service: service.Service
    """

    def __init__(self, service, conf):
        self._service = service
        self._conf = conf
        self._settled_to = ''
        self._starting = threading.Lock()
        self._is_started = False

    def start(self):
        """Start, once a process; not before the WSGI server forks."""
        with self._starting:
            if self._is_started:
                return
            self._is_started = True
        options = self._conf.clickos_api
        metrics.serve(self._service, options)
        for name, interval_s, work in (
                ('settle', options.pending_change_poll_interval, self.settle),
                ('share', options.share_interval, self._service.limits.work),
                ('prune', options.prune_interval, self.prune)):
            if interval_s:
                threading.Thread(
                    name=name, target=_forever, args=(interval_s, work),
                    daemon=True).start()

    def settle(self):
        """Ask the agents about changes without a verdict.

        Those of some states; the next call continues with others, so that
        no number of states without an answer keeps it from the rest.
        """
        age_s = timing.bus_s(
            self._conf.clickos_api.guest_timeout) + _MARGIN_S
        found = history.unsettled(self._service.store, age_s,
                                  self._settled_to, _STATES)
        self._settled_to = found[-1][0] if len(found) == _STATES else ''
        of_hosts = {}
        for each in random.sample(found, len(found)):
            of_hosts.setdefault(each[2], []).append(each)
        if of_hosts:
            with futures.ThreadPoolExecutor(_HOSTS, 'settle') as pool:
                list(pool.map(self._settle_host, of_hosts.values()))

    def _settle_host(self, found):
        """Settle the changes of a host, one state after the other."""
        silent = 0
        for key, server_id, host, number in found:
            try:
                self._settle(key, server_id, host, number)
            except errors.ApiError as exc:
                LOG.info('State %s: changes up to %d have no verdict yet: %s',
                         keys.name(key), number, exc.message)
                silent += isinstance(exc, errors.AgentTimeout)
            except Exception:
                LOG.exception('State %s', keys.name(key))
            if silent >= _SILENT:
                return

    def _settle(self, key, server_id, host, number):
        known = self._known(server_id, host, number)
        if known is not None:
            self._service.store.settle(key, number, known)
            LOG.info('State %s: changes up to %d are settled',
                     keys.name(key), number)

    def _known(self, server_id, host, number):
        """Return the verdicts up to a number; None if none can be had."""
        service = self._service
        try:
            server = service.cloud.server(server_id, is_fresh=True)
            return service.agent.changes_fence(
                server.host or host, server_id, number)
        except ownership.Gone:
            return _nothing('server-gone')
        except errors.ApiError as exc:
            if exc.code not in _NO_GUEST:
                raise
        age_s = time.time() - number / 1e6
        return _nothing('no-guest') if age_s > _LOST_S else None

    def prune(self):
        """Delete the states of servers that Nova no longer has."""
        after = ''
        while page := history.servers(self._service.store, after):
            for key, server_id, gone_at in page:
                try:
                    self._prune(key, server_id, gone_at)
                except errors.ApiError as exc:
                    LOG.info('State %s stays: %s', keys.name(key),
                             exc.message)
            after = page[-1][0]
        for key in history.unused(self._service.store, _ORPHAN_GRACE_S):
            self._service.store.delete(key)
            LOG.info('State %s: no server started with it', keys.name(key))
        self._service.limits.prune(_ORPHAN_GRACE_S)

    def _prune(self, key, server_id, gone_at):
        store = self._service.store
        is_gone = self._service.cloud.is_gone(server_id)
        if not is_gone:
            if gone_at:
                history.set_gone(store, key, False)
        elif keys.is_reference(key) and not self._is_orphan(gone_at):
            if not gone_at:
                history.set_gone(store, key, True)
        else:
            store.delete(key)
            LOG.info('Server %s is gone, its desired state too', server_id)

    def _is_orphan(self, gone_at):
        grace = datetime.timedelta(seconds=_ORPHAN_GRACE_S)
        return gone_at is not None \
            and desired_state.now() - gone_at >= grace


def _nothing(why):
    return {'applied': [], 'refused': [], 'pending': [], 'passing': {},
            'why': why}


def _forever(interval_s, work):
    while True:
        time.sleep(interval_s)
        try:
            work()
        except errors.ApiError as exc:
            LOG.info('%s: %s', threading.current_thread().name, exc.message)
        except Exception:
            LOG.exception('%s', threading.current_thread().name)
