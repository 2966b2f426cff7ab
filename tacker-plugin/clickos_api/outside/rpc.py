# SPDX-License-Identifier: Apache-2.0
"""The client of clickos-agent."""

import functools
import threading
import time
import urllib.parse

from clickos_client import contract
from clickos_client import flows
from clickos_client import host_text
from clickos_client import rpc
from clickos_client import secrets
from clickos_client import timing
import fastjsonschema
from oslo_log import log as logging
import oslo_messaging as messaging

from clickos_api import errors
from clickos_api.state import states

LOG = logging.getLogger(__name__)

#: HTTP status of cosmosd's error codes (docs/interfaces.md); others are 502.
STATUS = {
    'bad-request': 400, 'bad-config': 400, 'handler-error': 400,
    'too-long': 400, 'not-permitted': 403, 'no-such-element': 404,
    'no-such-handler': 404, 'no-such-guest': 409, 'dead-guest': 409,
    'not-active': 409, 'unsupported': 409, 'state-dir': 507,
    'busy': 503, 'stale': 503, 'timeout': 504,
}
#: Codes after which the guest may have applied a write all the same.
_UNCERTAIN = {'agent-failed', 'bad-answer', 'client-timeout', 'internal',
              'no-verdict', 'store', 'timeout', 'unavailable'}
#: Seconds for which an agent of an earlier release is asked in its words.
_OLDER_S = 60
#: Nova tells tenants no names of hosts; the log has them.
_AGENT = "the clickos-agent of the guest's host"
_COUNTERS = ('packets', 'bytes', 'dropped', 'looped')


def is_refusal(error):
    """Return whether a failed change surely has no effect, now or later."""
    return isinstance(error, errors.ApiError) \
        and error.code not in _UNCERTAIN


class Agent:
    """Calls to the agent of a compute host.

    Every method raises errors.AgentTimeout if no answer comes in time, and an
    errors.ApiError with cosmosd's code and message if the call fails.
    """

    def __init__(self, conf):
        self._conf = conf
        self._guest_ms = conf.clickos_api.guest_timeout * 1000
        self._bus_s = timing.bus_s(conf.clickos_api.guest_timeout)
        self._clients = {}
        #: by host: a version that its agent lacked, and until when it counts
        self._lacking = {}
        self._making = threading.Lock()

    def handler_list(self, host, server_id):
        """List handlers as [{'name': ..., 'read': bool, 'write': bool}]."""
        answer = self._ask(host, 'handler_list', server_id)
        return [{key: each[key] for key in ('name', 'read', 'write')}
                for each in answer['handlers']]

    def handler_read(self, host, server_id, read):
        """Return the value of a handler as text.

        :param read: states.Read
        """
        more = {'param': read.parameter} if read.parameter else {}
        return self._ask(host, 'handler_read', server_id, name=read.name,
                         **more)['value']

    def handlers_read(self, host, server_id, reads):
        """Return texts or errors.ApiError, one for each read, in order.

        :param reads: list of states.Read
        """
        params = [read.parameter for read in reads]
        values = self._ask(host, 'handlers_read', server_id,
                           names=[read.name for read in reads],
                           **({'params': params} if any(params) else {})
                           )['values']
        if len(values) != len(reads):
            raise _bad_answer(host, f'{len(values)} values')
        return [each['value'] if 'value' in each else _error(host, each)
                for each in values]

    def handler_write(self, host, server_id, change, writes,
                      has_secrets=False):
        """Write [[name, value], ...]; all of them or none.

        :param change: states.ChangeId; the guest refuses it after a higher
            one
        :param has_secrets: no error and no log has the guest's words
        :returns: states.Accepted
        """
        more = {'has_secrets': True} if has_secrets else {}
        return _accepted(host, self._ask(
            host, 'handler_write', server_id, writes=writes,
            change_id=change.on_wire(), **more))

    def flows_read(self, host, server_id, element, part):
        """Return a part of an element's flows as text."""
        return self._ask(host, 'flows_read', server_id, element=element,
                         part=part)['value']

    def flows_write(self, host, server_id, writes):
        """Write handlers of flows; all of them or none."""
        try:
            self._ask(host, 'flows_write', server_id, writes=writes)
        except errors.ApiError as exc:
            earlier = flows.for_earlier_agents(writes)
            if exc.code != 'bad-request' or earlier == writes:
                raise
            # An agent of before 1.0 refuses the handler's new name.
            self._ask(host, 'flows_write', server_id, writes=earlier)

    def config_replace(self, host, server_id, change, config, config_name):
        """Replace the configuration of a guest that runs on.

        :param change: as of handler_write
        :returns: as of handler_write
        """
        return _accepted(host, self._ask(
            host, 'config_replace', server_id, config=config,
            config_name=config_name, change_id=change.on_wire()))

    def changes_fence(self, host, server_id, number):
        """End the changes of a guest up to a number; return their verdicts.

        :returns: {'incarnation', 'applied', 'refused', 'pending', 'passing'}
        """
        answer = self._call(host, 'changes_fence', server_id=server_id,
                            number=number)
        return {**answer, 'passing': _passing(answer), 'refused': [
            {**each, 'message': _told(host, each['code'], each['message'])}
            for each in answer['refused']]}

    def port_list(self, host, server_id):
        """List a guest's ports with what the switch counted."""
        answer = self._call(host, 'port_list', server_id=server_id)
        return [_port(each) for each in answer['ports']]

    def chain_counters(self, host, chain_id):
        """Return the counters of a chain, with a list ``hops``."""
        answer = self._call(host, 'chain_counters', chain_id=chain_id)
        hops = answer.get('hops')
        for counters in (answer, *hops) if isinstance(hops, list) else ({},):
            # A host of an earlier version counts no loops.
            counted = isinstance(counters, dict) and {'looped': 0, **counters}
            if not counted or any(type(counted.get(key)) is not int
                                  for key in _COUNTERS):
                raise _bad_answer(host, 'counters')
            counters.update(counted)
        return answer

    def _ask(self, host, method, server_id, **arguments):
        """Ask a guest, which has its time for the answer."""
        return self._call(host, method, server_id=server_id,
                          timeout_ms=self._guest_ms, **arguments)

    def _call(self, host, method, **arguments):
        try:
            answer = self._asked(host, method, arguments)
        except (messaging.MessagingTimeout,
                messaging.MessageUndeliverable) as exc:
            LOG.warning('Agent of host %s: %s: %s', host, method,
                        type(exc).__name__)
            raise errors.AgentTimeout(
                f'{_AGENT} did not answer within {self._bus_s} s')
        except Exception as exc:   # whatever was raised in the agent
            LOG.exception('Agent of host %s: %s', host, method)
            raise errors.BadGateway(
                _AGENT + (
                    f' is of an earlier release and has no {method}; upgrade'
                    ' it' if _is_unsupported(exc)
                    else ' cannot be asked now'))
        return _checked(host, method, answer, 'has_secrets' in arguments)

    def _asked(self, host, method, arguments):
        """Ask as this release does, or as the agent's earlier one did."""
        *newer, oldest = rpc.calls(method, arguments)
        for version, *form in newer:
            if self._lacks(host, version):
                continue
            try:
                return self._sent(host, version, *form)
            except Exception as exc:
                if not _is_unsupported(exc):
                    raise
            self._lacking[host] = version, time.monotonic() + _OLDER_S
        return self._sent(host, *oldest)

    def _lacks(self, host, version):
        """Return whether an agent refused a version just now."""
        refused, until_s = self._lacking.get(host, (version, 0))
        return time.monotonic() < until_s \
            and rpc.order(version) >= rpc.order(refused)

    def _sent(self, host, version, method, arguments):
        client = self._connected(host).prepare(server=host, version=version)
        return client.call({}, method, **arguments)

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
                    timeout=self._bus_s, retry=1)
            return self._clients[url]


def transport_url(conf, host):
    """Return the URL of the virtual host that a host's agent listens on.

    :returns: None for the service's own, which all agents then share
    """
    template = conf.clickos_api.agent_transport_url
    return template and template.replace(
        '{host}', urllib.parse.quote(host, safe=''))


def _is_unsupported(error):
    """Return whether an agent has no such version."""
    return isinstance(error, messaging.UnsupportedVersion) \
        or getattr(error, 'exc_type', None) == 'UnsupportedVersion'


@functools.cache
def _schema(method):
    """Return what checks the answer of a method, by the contract."""
    # An answer to a numbered change is the same for both kinds.
    verb = rpc.RELAYED['handler_write' if method == 'config_replace'
                       else method][0]
    return fastjsonschema.compile(contract.schema('cosmosd', verb, 'answer'),
                                  use_default=False)


def _checked(host, method, answer, has_secrets=False):
    """Return an answer that fits the contract; a hostile host sends others."""
    if not isinstance(answer, dict):
        raise _bad_answer(host, type(answer).__name__)
    if answer.get('error') is not None:
        raise _error(host, answer, has_secrets)
    if method == 'flows_read':
        method = 'handler_read'
    if method in rpc.RELAYED:
        try:
            _schema(method)(answer)
        except fastjsonschema.JsonSchemaValueException as exc:
            raise _bad_answer(host, exc.name)
    return answer


def _error(host, answer, has_secrets=False):
    """Return the error that an answer has."""
    error = answer['error']
    if not isinstance(error, dict):
        return _bad_answer(host, 'error')
    code = str(error.get('code') or 'internal')
    message = str(error.get('message') or code)
    if has_secrets:
        message = secrets.shown(code, message)
    status = STATUS.get(code, 502)
    told = _told(host, code, message, is_logged=status == 502)
    return errors.ApiError(told, code=code, status=status)


def _told(host, code, message, is_logged=False):
    """Return what a tenant may read of a host's text; log the others."""
    told = host_text.shown(code, message)
    if is_logged or told != message:
        LOG.error('Agent of host %s: %.64r: %.1000r', host, code, message)
    return told


def _accepted(host, answer):
    """Return the states.Accepted of an answer to a numbered change."""
    if not answer.get('incarnation') or 'applied' not in answer:
        raise _bad_answer(host, 'applied')
    return states.Accepted(answer['applied'], answer['incarnation'][:36],
                           _passing(answer))


def _passing(answer):
    """Return {number: states.Passing}; a host of before has none."""
    return {each['number']: states.Passing(tuple(each['commands']),
                                           tuple(each['edits']))
            for each in answer.get('passing', ())}


def _port(each):
    return {'id': each.get('port_id'), 'mac_address': each['mac'],
            'link_up': each['link_up'],
            'counters': {name: value
                         for name, value in each['counters'].items()
                         if name != 'kicks' and type(value) is int}}


def _bad_answer(host, place):
    """Return the error of an answer.

    :param place: where it is wrong; its content may be a handler's value
    """
    LOG.error('Agent of host %s: not an answer: %.200r', host, place)
    return errors.BadGateway(
        f'{_AGENT} gave an answer that cannot be understood')
