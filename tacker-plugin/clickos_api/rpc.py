# SPDX-License-Identifier: Apache-2.0
"""The client of clickos-agent."""

import threading
import urllib.parse

from clickos_client import rpc
from clickos_client import secrets
from oslo_log import log as logging
import oslo_messaging as messaging

from clickos_api import errors
from clickos_api import states

LOG = logging.getLogger(__name__)

#: HTTP status of cosmosd's error codes (docs/interfaces.md); others are 502.
STATUS = {
    'bad-request': 400, 'bad-config': 400, 'handler-error': 400,
    'too-long': 400, 'not-permitted': 403, 'no-such-element': 404,
    'no-such-handler': 404, 'no-such-guest': 409, 'dead-guest': 409,
    'not-active': 409, 'state-dir': 507,
    'busy': 503, 'stale': 503, 'timeout': 504,
}
#: Codes after which the guest may have applied a write all the same.
_UNCERTAIN = {'agent-failed', 'bad-answer', 'client-timeout', 'internal',
              'no-verdict', 'store', 'timeout', 'unavailable'}


def is_refusal(error):
    """Tell whether a failed change surely has no effect, now or later."""
    return isinstance(error, errors.ApiError) \
        and error.code not in _UNCERTAIN


class Agent:
    """Calls to the agent of a compute host.

    Every method raises errors.Silent if no answer comes in time, and an
    errors.ApiError with cosmosd's code and message if the call fails.
    """

    def __init__(self, conf):
        self._conf = conf
        self._clients = {}
        self._making = threading.Lock()

    def handler_list(self, host, server_id):
        """List handlers as [{'name': ..., 'read': bool, 'write': bool}]."""
        answer = self._call(host, 'handler_list', server_id=server_id)
        return [_handler(host, each)
                for each in _field(host, answer, 'handlers', list)]

    def handler_read(self, host, server_id, read):
        """Return the value of a handler as text.

        :param read: states.Read
        """
        more = {'param': read.parameter} if read.parameter else {}
        answer = self._call(host, 'handler_read', server_id=server_id,
                            name=read.name, **more)
        return _field(host, answer, 'value', str)

    def handlers_read(self, host, server_id, reads):
        """Return texts or errors.ApiError, one for each read, in order.

        :param reads: list of states.Read
        """
        params = [read.parameter for read in reads]
        answer = self._call(host, 'handlers_read', server_id=server_id,
                            names=[read.name for read in reads],
                            **({'params': params} if any(params) else {}))
        values = _field(host, answer, 'values', list)
        if len(values) != len(reads):
            raise _nonsense(host, values)
        return [_value(host, each) for each in values]

    def handler_write(self, host, server_id, ticket, writes,
                      has_secrets=False):
        """Write [[name, value], ...]; all of them or none.

        :param ticket: states.Ticket; the guest refuses it after a higher one
        :param has_secrets: no error and no log has the guest's words
        :returns: states.Accepted
        """
        return _taken(host, self._call(
            host, 'handler_write', server_id=server_id, writes=writes,
            attempt=ticket.number, incarnation=ticket.incarnation,
            **({'has_secrets': True} if has_secrets else {})))

    def flows_read(self, host, server_id, element, part):
        """Return a part of an element's flows as text."""
        answer = self._call(host, 'flows_read', server_id=server_id,
                            element=element, part=part)
        return _field(host, answer, 'value', str)

    def flows_write(self, host, server_id, writes):
        """Write handlers of flows; all of them or none."""
        self._call(host, 'flows_write', server_id=server_id, writes=writes)

    def config_replace(self, host, server_id, ticket, config, config_name):
        """Replace the configuration of a guest that runs on.

        :param ticket: as of handler_write
        :returns: as of handler_write
        """
        return _taken(host, self._call(
            host, 'config_replace', server_id=server_id, config=config,
            config_name=config_name, attempt=ticket.number,
            incarnation=ticket.incarnation))

    def changes_settle(self, host, server_id, number):
        """End the changes of a guest up to a number; return their verdicts.

        :returns: {'incarnation', 'applied', 'refused', 'pending', 'passing'}
        """
        answer = self._call(host, 'changes_settle', server_id=server_id,
                            attempt=number)
        for key in ('applied', 'pending'):
            _numbers(host, _field(host, answer, key, list))
        for each in _field(host, answer, 'refused', list):
            _field(host, each, 'number', int)
            for key in ('code', 'message'):
                _field(host, each, key, str)
        return {**answer, 'passing': _passing(host, answer)}

    def port_list(self, host, server_id):
        """List a guest's ports with what the switch counted."""
        answer = self._call(host, 'port_list', server_id=server_id)
        return [_port(host, each)
                for each in _field(host, answer, 'ports', list)]

    def chain_counters(self, host, chain_id):
        """Return the counters of a chain, with a list ``hops``."""
        answer = self._call(host, 'chain_counters', chain_id=chain_id)
        for counters in (answer, *_field(host, answer, 'hops', list)):
            for key in ('packets', 'bytes', 'dropped'):
                _field(host, counters, key, int)
            # A host of an earlier version counts no loops.
            counters.setdefault('looped', 0)
            _field(host, counters, 'looped', int)
        return answer

    def _connected(self, host):
        """Return the client of a host's agent, made at the first call.

        A connection made before the WSGI server forks would be shared.
        """
        with self._making:
            url = transport_url(self._conf, host)
            if url not in self._clients:
                self._clients[url] = messaging.get_rpc_client(
                    messaging.get_rpc_transport(self._conf, url=url),
                    messaging.Target(topic=rpc.TOPIC, version=rpc.OLDEST),
                    timeout=self._conf.clickos_api.rpc_timeout, retry=1)
            return self._clients[url]

    def _call(self, host, method, **arguments):
        has_secrets = 'has_secrets' in arguments
        version = rpc.needed(method, arguments)
        try:
            answer = self._connected(host).prepare(
                server=host, version=version).call({}, method, **arguments)
        except (messaging.MessagingTimeout,
                messaging.MessageUndeliverable):
            raise errors.Silent(
                f'the clickos-agent of host {host} did not answer within'
                f' {self._conf.clickos_api.rpc_timeout} s')
        except Exception:   # whatever was raised in the agent arrives here
            LOG.exception('Agent of host %s: %s', host, method)
            raise errors.BadGateway(
                f'the clickos-agent of host {host} cannot be asked now')
        return _checked(host, answer, has_secrets)


def transport_url(conf, host):
    """Return the URL of the virtual host that a host's agent listens on.

    :returns: None for the service's own, which all agents then share
    """
    template = conf.clickos_api.agent_transport_url
    return template and template.replace(
        '{host}', urllib.parse.quote(host, safe=''))


def _checked(host, answer, has_secrets=False):
    if not isinstance(answer, dict):
        raise _nonsense(host, answer)
    if answer.get('error') is None:
        return answer
    raise _error(host, answer, has_secrets)


def _error(host, answer, has_secrets=False):
    """Return the error that an answer has."""
    error = answer['error']
    if not isinstance(error, dict):
        return _nonsense(host, answer)
    code = str(error.get('code') or 'internal')
    message = str(error.get('message') or code)
    if has_secrets:
        message = secrets.shown(code, message)
    status = STATUS.get(code, 502)
    if status == 502:
        LOG.error('Agent of host %s: %s: %s', host, code, message)
    return errors.ApiError(message, code=code, status=status)


def _value(host, each):
    """Return the value that one of several reads brought, or its error."""
    if isinstance(each, dict) and each.get('error') is not None:
        return _error(host, each)
    return _field(host, each, 'value', str)


def _field(host, answer, key, kind):
    value = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(value, kind):
        raise _nonsense(host, answer)
    return value


def _taken(host, answer):
    numbers = _numbers(host, _field(host, answer, 'applied', list))
    return states.Accepted(
        numbers, _field(host, answer, 'incarnation', str)[:36],
        _passing(host, answer))


def _passing(host, answer):
    """Return {number: states.Passing}; a host of before has none."""
    found = _field(host, {'passing': [], **answer}, 'passing', list)
    return {_field(host, each, 'number', int): states.Passing(*(
        tuple(_numbers(host, _field(host, each, key, list)))
        for key in ('commands', 'edits'))) for each in found}


def _numbers(host, numbers):
    if not all(type(number) is int for number in numbers):
        raise _nonsense(host, numbers)
    return numbers


def _handler(host, each):
    if not isinstance(each, dict) or not isinstance(each.get('name'), str):
        raise _nonsense(host, each)
    return {'name': each['name'], 'read': bool(each.get('read')),
            'write': bool(each.get('write'))}


def _port(host, each):
    counters = _field(host, each, 'counters', dict)
    if not all(isinstance(value, int) for value in counters.values()):
        raise _nonsense(host, each)
    return {'id': each.get('port_id'),
            'mac_address': _field(host, each, 'mac', str),
            'link_up': _field(host, each, 'link_up', bool),
            'counters': {name: value for name, value in counters.items()
                         if name != 'kicks'}}


def _nonsense(host, answer):
    # Its content may be a handler's value.
    LOG.error('Agent of host %s: not an answer: %s', host,
              type(answer).__name__)
    return errors.BadGateway(
        f'the clickos-agent of host {host} gave an answer that cannot be'
        ' understood')
