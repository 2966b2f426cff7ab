# SPDX-License-Identifier: Apache-2.0
"""RPC endpoint: clickos-api reads and writes handlers of guests here."""

import functools

from clickos_client import flows
from clickos_client import rpc
from clickos_client import timing
from cosmos_client import CosmosError
from oslo_log import log as logging
import oslo_messaging
from oslo_utils import uuidutils

from clickos_agent import metrics

LOG = logging.getLogger(__name__)


class BadRequest(Exception):
    """An argument that is not what the contract says."""


class Endpoint:
    """The methods of docs/interfaces.md, "RPC: clickos-api to agent".

    They are the rows of rpc.RELAYED, and two that need more than a verb. No
    exception crosses the message queue: an answer is a dict, and
    ``{'error': {'code', 'message'}}`` if the method failed.
    """

    target = oslo_messaging.Target(version=rpc.VERSION)

    def __init__(self, client, reason=lambda chain_id: None):
        """Serve with cosmosd's answers.

        :param client: CosmosClient
        :param reason: returns why a port chain is not ready, or None
        """
        self._client = client
        self._reason = reason
        self._methods = {
            method: functools.partial(self._relay, method)
            for method in rpc.RELAYED}
        self._methods |= {'flows_read': self._flows_read,
                          'chain_counters': self._chain_counters}

    def __getattr__(self, method):
        if method.startswith('_') or method not in self._methods:
            raise AttributeError(method)
        return functools.partial(self._answer, method)

    def _answer(self, method, context, **args):
        with metrics.SECONDS.labels(method).time():
            answer = self._answered(method, args)
        code = answer.get('error', {}).get('code', 'ok')
        metrics.CALLS.labels(method, code).inc()
        return answer

    def _answered(self, method, args):
        try:
            return self._methods[method](**args)
        except BadRequest as e:
            return _error('bad-request', str(e))
        except CosmosError as e:
            # The message may have a value, which may be a secret.
            LOG.info('%s: %s', method, e.code)
            return _error(e.code, e.message)
        except Exception:
            LOG.exception('%s failed', method)
            return _error('internal', 'clickos-agent: internal error, see '
                          'its log')

    def _relay(self, method, server_id=None, **args):
        """Ask cosmosd about a guest; its types check the arguments.

        The caller sets nothing but the arguments of the row. Only handlers
        of flows are written without a change_id, since they are no state.
        """
        verb, keys = rpc.RELAYED[method]
        args = rpc.newer(method, args)
        for name in args.keys() - keys:
            raise BadRequest(f'{name:.40}: unknown argument of {method}')
        if 'change_id' in keys and not args.get('change_id'):
            raise BadRequest('change_id: is missing')
        if method == 'flows_write':
            _require_flows(args.get('writes'))
        if 'timeout_ms' in keys:
            args.setdefault('timeout_ms', timing.GUEST_S * 1000)
        return self._client.call(verb, uuid=server_id, **args)

    def _flows_read(self, element=None, part=None, **args):
        """:returns: ``value``, a part of an element's flows"""
        return self._relay('handler_read', name=f'{element}.state',
                           param=str(part), **args)

    def _chain_counters(self, chain_id=None):
        """:returns: the counters of a chain, and ``hops`` with theirs"""
        if not uuidutils.is_uuid_like(chain_id):   # those of an operator
            raise BadRequest('chain_id: expected a UUID')
        for chain in self._client.call('chain-list')['chains']:
            if chain['chain'] == chain_id:
                return {**chain['counters'], 'hops': _hops(chain)}
        why = self._reason(chain_id) or ('the switch does not have it; start'
                                         ' the servers of all its hops')
        return _error('not-active', f'port chain {chain_id}: {why}')


def _error(code, message):
    return {'error': {'code': code, 'message': message}}


def _require_flows(writes):
    for write in writes if isinstance(writes, list) else ():
        name = write[0] if isinstance(write, list) and write else None
        if not isinstance(name, str) or not name.endswith(flows.WRITTEN):
            raise BadRequest(f'{name!s:.40}: not a flow handler')


def _hops(chain):
    return [{**counters, 'pairs': len(hop['pairs']), 'live_pairs': live}
            for hop, counters, live in zip(
                chain['hops'], chain['hop_counters'], chain['live_pairs'])]
