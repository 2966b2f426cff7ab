# SPDX-License-Identifier: Apache-2.0
"""RPC endpoint: clickos-api reads and writes handlers of guests here."""

import functools
import uuid

from clickos_client import document
from clickos_client import flows
from clickos_client import limits
from clickos_client import rpc
from cosmos_client import CosmosError
from oslo_log import log as logging
import oslo_messaging
from oslo_utils import uuidutils

from clickos_agent import metrics

LOG = logging.getLogger(__name__)

#: Parts of a table of flows, of 64 flows at least.
_MAX_PARTS = 2 ** 20


class BadRequest(Exception):
    """An argument that is not what the contract says."""


def _plain(method):
    """Answer with data only: no exception crosses the message queue."""
    @functools.wraps(method)
    def wrapped(self, context, **kwargs):
        with metrics.SECONDS.labels(method.__name__).time():
            answer = answered(self, kwargs)
        code = answer.get('error', {}).get('code', 'ok')
        metrics.CALLS.labels(method.__name__, code).inc()
        return answer

    def answered(self, kwargs):
        try:
            return method(self, **kwargs)
        except (BadRequest, document.DocumentError) as e:
            return _error('bad-request', str(e))
        except CosmosError as e:
            # The message may have a value, which may be a secret.
            LOG.info('%s: %s', method.__name__, e.code)
            return _error(e.code, e.message)
        except Exception:
            LOG.exception('%s failed', method.__name__)
            return _error('internal', 'clickos-agent: internal error, see '
                          'its log')
    return wrapped


def _error(code, message):
    return {'error': {'code': code, 'message': message}}


class Endpoint:
    """The methods of docs/interfaces.md, "RPC: clickos-api to agent".

    Every answer is a dict; ``{'error': {'code', 'message'}}`` with cosmosd's
    codes when the method failed.
    """

    target = oslo_messaging.Target(version=rpc.VERSION)

    def __init__(self, client, handler_timeout_s):
        """Serve with cosmosd's answers.

        :param client: CosmosClient
        :param handler_timeout_s: seconds a guest may take for its writes.
        """
        self._client = client
        self._timeout_ms = handler_timeout_s * 1000

    @_plain
    def handler_list(self, server_id=None):
        """:returns: ``handlers``, a list of {'name', 'read', 'write'}"""
        return self._client.call('handler-list', uuid=_uuid(server_id))

    @_plain
    def handler_read(self, server_id=None, name=None, param=None):
        """Read a handler.

        :param param: for a handler that takes a parameter
        :returns: ``value``, the text the handler gave
        """
        more = {} if param is None else {'param': _param(param, 'param')}
        return self._client.call('handler-read', uuid=_uuid(server_id),
                                 name=_name(name), **more)

    @_plain
    def handlers_read(self, server_id=None, names=None, params=None):
        """Read handlers in one request to the guest's host.

        :param names: list of at most 64 names.
        :param params: list of a parameter for each name, '' without one.
        :returns: ``values`` in this order, each {'value': text} or
            {'error': {'code', 'message'}}
        """
        if not isinstance(names, list) or not 1 <= len(names) <= limits.READS:
            raise BadRequest('names: expected 1 to %d names' % limits.READS)
        more = {} if params is None else {'params': _params(params, names)}
        return self._client.call('handlers-read', uuid=_uuid(server_id),
                                 names=[_name(name) for name in names], **more)

    @_plain
    def handler_write(self, server_id=None, attempt=None, writes=None,
                      incarnation=None, has_secrets=False):
        """Apply writes in order, all or none.

        :param attempt: number; cosmosd refuses it after a higher or equal
            one.
        :param writes: list of pairs [name, value].
        :param incarnation: of the guest that is to take it, if known.
        :param has_secrets: no error may have the guest's words.
        :returns: ``applied``, the numbers of this and of earlier attempts,
            ``incarnation``, and ``passing``, which of their writes are
            commands or edits; missing if none is
        """
        return self._client.call(
            'handler-write', uuid=_uuid(server_id), writes=_pairs(writes),
            timeout_ms=self._timeout_ms, stamp=_stamp(attempt, incarnation),
            has_secrets=bool(has_secrets))

    @_plain
    def flows_read(self, server_id=None, element=None, part=None):
        """:returns: ``value``, a part of an element's flows"""
        if type(part) is not int or not 0 <= part < _MAX_PARTS:
            raise BadRequest(f'part: expected a number of 0 to {_MAX_PARTS}')
        return self._client.call('handler-read', uuid=_uuid(server_id),
                                 name=_name(element) + '.state',
                                 param=str(part))

    @_plain
    def flows_write(self, server_id=None, writes=None):
        """Write handlers of flows only, which are no desired state.

        :param writes: as of handler_write.
        """
        for name, _ in _pairs(writes):
            if not name.endswith(flows.WRITTEN):
                raise BadRequest(f'{name}: is no handler of flows')
        self._client.call('handler-write', uuid=_uuid(server_id),
                          writes=writes, timeout_ms=self._timeout_ms)
        return {}

    @_plain
    def config_replace(self, server_id=None, attempt=None, config=None,
                       config_name=None, incarnation=None):
        """Replace a running guest's configuration, or change nothing.

        :param attempt: as of handler_write.
        :returns: as of handler_write
        """
        found = document.replacement(config, config_name)
        answer = self._client.call('router-install', uuid=_uuid(server_id),
                                   config=found.config,
                                   config_name=found.config_name,
                                   timeout_ms=self._timeout_ms,
                                   stamp=_stamp(attempt, incarnation))
        return {key: answer[key]
                for key in ('applied', 'incarnation', 'passing')
                if key in answer}

    @_plain
    def changes_settle(self, server_id=None, attempt=None):
        """End what is under way up to a number; see cosmosd's verb.

        :returns: ``incarnation``, ``applied``, ``refused``, ``pending``
        """
        return self._client.call('change-settle', uuid=_uuid(server_id),
                                 number=_number(attempt))

    @_plain
    def port_list(self, server_id=None):
        """:returns: ``ports``, what the switch counted at each"""
        return self._client.call('vif-list', uuid=_uuid(server_id))

    @_plain
    def chain_counters(self, chain_id=None):
        """:returns: the counters of a chain, and ``hops`` with theirs"""
        name = _uuid(chain_id, 'chain_id')
        for chain in self._client.call('chain-list')['chains']:
            if chain['chain'] == name:
                return {**chain['counters'], 'hops': _hops(chain)}
        return _error('not-active', f'port chain {name}: the switch does'
                      ' not have it; start the servers of all its hops')


def _hops(chain):
    return [{**counters, 'pairs': len(hop['pairs']), 'live_pairs': live}
            for hop, counters, live in zip(
                chain['hops'], chain['hop_counters'], chain['live_pairs'])]


def _uuid(value, place='server_id'):
    if not isinstance(value, str) or not uuidutils.is_uuid_like(value):
        raise BadRequest(f'{place}: expected a UUID')
    return str(uuid.UUID(value))  # cosmosd takes this form only


def _number(value):
    if type(value) is not int or value < 1:
        raise BadRequest('attempt: expected a number above 0')
    return value


def _stamp(number, incarnation):
    stamp = {'number': _number(number)}
    if incarnation is not None:
        stamp['incarnation'] = _uuid(incarnation, 'incarnation')
    return stamp


def _name(value):
    if not isinstance(value, str) \
            or not 1 <= len(value) <= limits.HANDLER_NAME:
        raise BadRequest('name: expected 1 to %d characters'
                         % limits.HANDLER_NAME)
    return value


def _param(value, place):
    if not isinstance(value, str):
        raise BadRequest(f'{place}: expected a text')
    size = len(value.encode(errors='surrogatepass'))
    if size > limits.PARAMETER_BYTES:
        raise BadRequest(f'{place}: has {size} bytes, the limit is'
                         f' {limits.PARAMETER_BYTES}')
    return value


def _params(values, names):
    if not isinstance(values, list) or len(values) != len(names):
        raise BadRequest(f'params: expected a list of {len(names)} texts')
    return [_param(value, f'params[{index}]')
            for index, value in enumerate(values)]


def _pairs(writes):
    if not isinstance(writes, list) \
            or not 1 <= len(writes) <= limits.WRITES:
        raise BadRequest('writes: expected 1 to %d pairs [name, value]'
                         % limits.WRITES)
    for index, write in enumerate(writes):
        if not isinstance(write, (list, tuple)) or len(write) != 2 \
                or not isinstance(write[1], str):
            raise BadRequest('writes[%d]: expected [name, value], two '
                             'strings' % index)
        _name(write[0])
    size = sum(len(value.encode(errors='surrogatepass'))
               for _, value in writes)
    if size > limits.VALUES_BYTES:
        raise BadRequest('writes: %d bytes of values, at most %d'
                         % (size, limits.VALUES_BYTES))
    return writes
