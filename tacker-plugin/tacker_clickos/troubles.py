# SPDX-License-Identifier: Apache-2.0
"""What the watcher tries again: one log line each, and a figure for it."""

import contextlib
import re
import threading

from oslo_config import cfg
from oslo_log import log as logging
import prometheus_client

LOG = logging.getLogger(__name__)

#: the kinds of things that fail, and how a log line names one
_NAMES = {'database': '%s', 'row': 'record of VNF %s', 'vim': 'VIM %s',
          'vnf': 'guests of VNF %s', 'scale': 'readings of VNF %s',
          'operation': 'operation %s', 'retry': 'lost retry of VNF %s',
          'sweep': 'sweep of VNF %s'}
#: characters of an error in the log
_MAX_ERROR = 500
#: ids of requests and objects, which make no other reason
_ID = re.compile(r'(?:0x)?[0-9a-fA-F-]{6,}')

REGISTRY = prometheus_client.CollectorRegistry()
_FAILING = prometheus_client.Gauge(
    'clickos_tacker_failing', 'Things that the watcher tries again, by kind',
    ('kind',), registry=REGISTRY)


class Troubles:
    """The things that failed at their last try.

    A thing is logged when it fails first, or for another reason, and when it
    succeeds again. Several threads may try things.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._errors = {kind: {} for kind in _NAMES}
        for kind in _NAMES:
            _FAILING.labels(kind).set(0)

    @contextlib.contextmanager
    def tried(self, kind, what):
        """Note how a try of one thing ends; raises nothing."""
        try:
            yield
        except Exception as error:
            with self._lock:
                self._begin(kind, what, error)
        else:
            with self._lock:
                failed = self._errors[kind].pop(what, None)
            if failed is not None:
                LOG.info('%s: works again', _NAMES[kind] % what)
        self._count(kind)

    def keep(self, kind, known):
        """Forget the things of a kind that are not there any more.

        :param known: those that are, or are no trouble for another reason
        """
        with self._lock:
            for what in [*self._errors[kind]]:
                if what not in known:
                    del self._errors[kind][what]
        self._count(kind)

    def _begin(self, kind, what, error):
        text = _line('%s: %s' % (type(error).__name__, error))
        reason = _ID.sub('', text)
        if self._errors[kind].get(what) != reason:
            self._errors[kind][what] = reason
            LOG.warning('%s: failed and is tried again: %s',
                        _NAMES[kind] % what, text)

    def _count(self, kind):
        _FAILING.labels(kind).set(len(self._errors[kind]))


def _line(text):
    """Return a text, which may be a tenant's, as a part of one log line."""
    return ''.join(each if each.isprintable() else ' '
                   for each in text[:_MAX_ERROR])


def serve():
    """Answer Prometheus, if the options say where (docs/operator/monitor.md).
    """
    options = cfg.CONF.clickos
    if not options.metrics_port:
        return
    try:
        prometheus_client.start_http_server(
            options.metrics_port, options.metrics_host, REGISTRY)
    except OSError as error:
        LOG.warning('%s:%d: no figures for Prometheus here: %s',
                    options.metrics_host, options.metrics_port, error)
