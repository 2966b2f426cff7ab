# SPDX-License-Identifier: Apache-2.0
"""The client of clickos-api, for programs."""

import base64
import dataclasses
import time
import typing
from urllib import parse

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc

from clickos_client import limits
from clickos_client import outcomes

SERVICE_TYPE = 'clickos'
#: Status of a change without a verdict.
ACCEPTED = 202
#: HTTP status of the error after a change, by its outcome.
_STATUS = {outcomes.REFUSED: 400, outcomes.LOST: 409, outcomes.UNKNOWN: 504}
_LOOK_S = 0.5


class ClickOSError(Exception):
    """clickos-api's refusal.

    :ivar status: the HTTP status
    :ivar code: the machine readable word, such as 'handler-error'
    :ivar message: what is wrong, for a person
    """

    def __init__(self, status, code, message):
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message

    @property
    def outcome(self):
        """The outcome of a change that failed so, a word of outcomes."""
        return outcomes.of(self.code)


@dataclasses.dataclass(frozen=True)
class _Resource:
    """What has an id, in a folder of the API."""

    folder: typing.ClassVar[str]

    id: str

    @property
    def path(self):
        """The path of the resource."""
        return f'/v1/{self.folder}/{parse.quote(self.id, safe="")}'

    @property
    def query(self):
        """The query of each request about the resource."""
        return {}


@dataclasses.dataclass(frozen=True)
class Server(_Resource):
    """A guest by its Nova server's UUID."""

    folder = 'servers'


@dataclasses.dataclass(frozen=True)
class Vnf:
    """A guest by its VNF instance's UUID.

    :param vnfc: VDU or VNFC id, needed if the VNF has several guests
    """

    id: str
    vnfc: str | None = None

    @property
    def path(self):
        """The path of the guest's resources."""
        return f'/v1/vnfs/{parse.quote(self.id, safe="")}'

    @property
    def query(self):
        """The query of each request about the guest."""
        return {'vnfc': self.vnfc} if self.vnfc else {}


@dataclasses.dataclass(frozen=True)
class Chain(_Resource):
    """A port chain of networking-sfc by its UUID."""

    folder = 'chains'


@dataclasses.dataclass(frozen=True)
class Port(_Resource):
    """A port of Neutron by its UUID."""

    folder = 'ports'


@dataclasses.dataclass(frozen=True)
class State(_Resource):
    """A state that user_data refers to, by its UUID."""

    folder = 'states'


@dataclasses.dataclass(frozen=True)
class States:
    """The states of the project."""

    path = '/v1/states'
    query = {}


@dataclasses.dataclass(frozen=True)
class Secrets:
    """The secrets of the project."""

    path = '/v1/secrets'
    query = {}


@dataclasses.dataclass(frozen=True)
class Limits(_Resource):
    """Limits that guests of the project share, by the id of their group."""

    folder = 'limits'


class Revision(int):
    """The number of a revision, and what the guest did only once.

    :ivar commands: handlers whose writes did something once
    :ivar edits: handlers whose writes changed a part of a table

    Desired state has neither: a start of the guest does not repeat them.
    """

    commands = edits = ()


@dataclasses.dataclass(frozen=True)
class Catalog:
    """The operator's catalog of packages."""

    path = '/v1/catalog'
    query = {}


class Client:
    """clickos-api with the credentials of a keystoneauth session.

    A guest is a Server, a Vnf, or a Nova server's UUID as text. Every method
    raises ClickOSError if clickos-api refuses, and keystoneauth's exceptions
    if it or keystone cannot be reached, or something else answers.

    :param session: keystoneauth session
    :param patience_s: seconds to wait for a guest's verdict
    :param adapter_options: such as region_name, interface, endpoint_override
    """

    def __init__(self, session, patience_s=60, **adapter_options):
        self._patience_s = patience_s
        adapter_options.setdefault('service_type', SERVICE_TYPE)
        self._adapter = adapter.Adapter(session, **adapter_options)

    def list_handlers(self, guest):
        """List handlers as [{'name': ..., 'read': bool, 'write': bool}]."""
        return self._call('handlers', 'GET', guest, '/handlers')

    def list_ports(self, guest):
        """List ports as [{'id', 'mac_address', 'link_up', 'counters'}]."""
        return self._call('ports', 'GET', guest, '/ports')

    def read(self, guest, name, max_age=None, parameter=None):
        """Return the value of a handler.

        :param max_age: seconds that the value may be old; None for a new one
        :param parameter: for a handler that takes one; its answer is new
        """
        more = {'parameter': parameter} if parameter else {}
        return self._call('value', 'GET', guest, _handler(name),
                          query={**more, **_age(max_age)})

    def read_many(self, guest, names, max_age=None):
        """Return {name: value or ClickOSError}, read with few requests.

        :param names: each a name or a tuple (name, parameter)
        :param max_age: as of read()
        """
        names, found = list(dict.fromkeys(names)), {}
        for at in range(0, len(names), limits.READS):
            some = names[at:at + limits.READS]
            answer = self._call('values', 'POST', guest, '/reads', {
                'names': some, **_age(max_age)})
            found |= _values(some, answer)
        return found

    def write(self, guest, name, value):
        """Write one handler; return the Revision of desired state.

        Waits for the guest's verdict, as every method that changes a guest.
        """
        return self._change('PUT', guest, _handler(name), {'value': value})

    def write_many(self, guest, writes):
        """Write [[name, value], ...], all or none; return the revision."""
        return self._change('POST', guest, '/handlers', {'writes': writes})

    def transfer_flows(self, guest, to):
        """Let guests go on with the flows of one that goes; return how many.

        The guest opens no further flows for a minute.

        :param to: ids of the servers of the other guests
        """
        answer = self._send('POST', guest, '/flows', {'to': list(to)})
        try:
            return answer.json()['flows']
        except (ValueError, KeyError, TypeError):
            raise ks_exc.InvalidResponse(answer)

    def set_limits(self, group, limits, server_ids):
        """Let guests share limits, and no others any more; as limits().

        :param group: a UUID, such as that of a VNF
        :param limits: [{'name', 'kind': 'rate' or 'quota', 'handler',
            'total'}]
        """
        return self._limits('PUT', group, {
            'limits': list(limits), 'servers': list(server_ids)})

    def limits(self, group):
        """List limits that guests share: 'name', 'kind', 'handler', 'total',
        'used', 'shared' and 'guests', with 'server', 'share', 'used' and
        'is_silent'. The list is empty for an unknown group.
        """
        try:
            return self._limits('GET', group)
        except ClickOSError as exc:
            if exc.code != 'no-such-limits':
                raise
            return []

    def _limits(self, method, group, body=None):
        answer = self._send(method, Limits(group), '', body)
        try:
            return answer.json()['limits']
        except (ValueError, KeyError, TypeError):
            raise ks_exc.InvalidResponse(answer)

    def delete_limits(self, group):
        """Forget limits; may be called twice."""
        try:
            self._send('DELETE', Limits(group), '')
        except ClickOSError as exc:
            if exc.status != 404:
                raise

    def replace_config(self, guest, config, config_name):
        """Replace a guest's configuration; return the revision.

        Elements of the same name and class keep their state.
        """
        return self._change('PUT', guest, '/configuration',
                            {'config': config, 'config_name': config_name})

    def restore(self, guest, revision):
        """Bring an earlier revision back; return the new revision."""
        return self._change('POST', guest, '/desired-state',
                            {'revision': revision})

    def events(self, guest):
        """List the reboots and failed starts of a guest: 'request_id',
        'action', 'result', 'finished_at', 'details'.
        """
        return self._call('events', 'GET', guest, '/events')

    def start_failures(self, guest):
        """Return why starts of a guest failed, {request id: [reason]}.

        Several hosts may have tried for one request.
        """
        found = {}
        for event in self.events(guest):
            if event['result'] == 'Error' and event['details']:
                reasons = found.setdefault(event['request_id'], {})
                reasons[event['details']] = True
        return {key: list(reasons) for key, reasons in found.items()}

    def changes(self, guest):
        """List changes: 'number', 'status', 'created_at', and maybe
        'revision' and 'error', the newest first.
        """
        return self._call('changes', 'GET', guest, '/changes')

    def change(self, guest, number):
        """Return a change as changes() lists it."""
        return self._call('change', 'GET', guest, f'/changes/{number}')

    def create_state(self, configuration):
        """Make a state that user_data may refer to; return its id.

        :param configuration: document.Configuration
        """
        answer = self._send('POST', States(), '', _body(configuration))
        try:
            return str(answer.json()['id'])
        except (ValueError, KeyError, TypeError):
            raise ks_exc.InvalidResponse(answer)

    def rebase_state(self, state_id, configuration, keep=None):
        """Give a state another configuration, under the writes it has.

        :param configuration: document.Configuration
        :param keep: handlers whose writes the state keeps; None for all
        :returns: False if the state was as wanted already
        """
        body = _body(configuration)
        if keep is not None:
            body['keep'] = sorted(keep)
        answer = self._send('PUT', State(state_id), '', body)
        try:
            return answer.json().get('changed') is not False
        except (ValueError, AttributeError):
            raise ks_exc.InvalidResponse(answer)

    def delete_state(self, state_id):
        """Forget a state that user_data refers to; may be called twice."""
        try:
            self._send('DELETE', State(state_id), '')
        except ClickOSError as exc:
            if exc.status != 404:
                raise

    def show_state(self, guest):
        """Return desired state: 'revision', 'writes', and maybe
        'configuration', an object of 'config' and 'config_name'.
        """
        answer = self._send('GET', guest, '/desired-state')
        try:
            return {'writes': answer.json()['writes'], **answer.json()}
        except (ValueError, KeyError, TypeError):
            raise ks_exc.InvalidResponse(answer)

    def desired_state(self, guest):
        """Return the [[name, value], ...] that are in force."""
        return self._call('writes', 'GET', guest, '/desired-state')

    def delete_desired_state(self, guest):
        """Forget a guest's desired state; may be called twice.

        Before or after the server is deleted: clickos-api removes what is
        left of a server that is gone.
        """
        try:
            self._send('DELETE', guest, '/desired-state')
        except ClickOSError as exc:
            if exc.status != 404:
                raise

    def create_secret(self, name, value):
        """Make a secret: 'id', 'name', 'reference', 'created_at'."""
        # keystoneauth would log the value.
        answer = self._send('POST', Secrets(), '',
                            {'name': name, 'value': value}, log=False)
        try:
            return answer.json()['secret']
        except (ValueError, KeyError, TypeError):
            raise ks_exc.InvalidResponse(answer)

    def list_secrets(self):
        """List secrets as create_secret() returns them."""
        return self._call('secrets', 'GET', Secrets(), '')

    def show_secret(self, secret_id):
        """Return a secret as create_secret() does."""
        return self._call('secret', 'GET', Secrets(),
                          f'/{parse.quote(secret_id, safe="")}')

    def delete_secret(self, secret_id):
        """Delete a secret."""
        self._send('DELETE', Secrets(), f'/{parse.quote(secret_id, safe="")}')

    def set_port_roles(self, port_id, roles):
        """Give a port of Neutron roles, of port_roles.ROLES.

        A port that a server uses keeps its roles.
        """
        self._send('PUT', Port(port_id), '/roles', {'roles': list(roles)})

    def list_catalog(self):
        """List the catalog: 'name', 'product', 'provider', 'version',
        'description'; a damaged package has no product.
        """
        return self._call('packages', 'GET', Catalog(), '')

    def catalog_package(self, name):
        """Return the bytes of a package of the catalog."""
        found = self._call('package', 'GET', Catalog(),
                           f'/{parse.quote(name, safe="")}')
        return base64.b64decode(found['content'])

    def chain(self, chain_id):
        """Return the counters of a port chain, hops in ``hops``."""
        return self._call('chain', 'GET', Chain(chain_id), '')

    def fuse(self, chain_id, server_id, hops):
        """Let a server answer for all hops of a chain, with their values.

        :param hops: [{'name', 'server', 'group'}] in order
        """
        self._send('PUT', Chain(chain_id), '/fusion',
                   {'server': server_id, 'hops': hops})

    def fusion(self, chain_id):
        """Return 'server' and 'hops' of a fused chain, or None."""
        try:
            return self._call('fusion', 'GET', Chain(chain_id), '/fusion')
        except ClickOSError as exc:
            if exc.code != 'not-fused':
                raise
            return None

    def unfuse(self, chain_id):
        """Let the hops' own guests answer again; may be called twice."""
        try:
            self._send('DELETE', Chain(chain_id), '/fusion')
        except ClickOSError as exc:
            if exc.code != 'not-fused':
                raise

    def _change(self, method, guest, path, body):
        """Change a guest; return the revision that a verdict gives."""
        answer = self._send(method, guest, path, body)
        try:
            found = answer.json()
            if answer.status_code != ACCEPTED:
                return _revision(found)
            number = found['change']['number']
        except (ValueError, KeyError, TypeError):
            raise ks_exc.InvalidResponse(answer)
        return self._verdict(guest, number)

    def _verdict(self, guest, number):
        """Ask for a change until it has a verdict; return its revision."""
        end_s = time.monotonic() + self._patience_s
        while time.monotonic() < end_s:
            time.sleep(_LOOK_S)
            found = self.change(guest, number)
            if found['status'] == 'applied':
                return _revision(found)
            if found['status'] != 'pending':
                error = found.get('error') or {}
                raise ClickOSError(
                    _STATUS.get(found['status'], _STATUS[outcomes.REFUSED]),
                    str(error.get('code')), str(error.get('message')))
        raise ClickOSError(
            _STATUS[outcomes.UNKNOWN], 'no-verdict', f'change {number}, after'
            f' {self._patience_s} s: {outcomes.message("no-verdict")}')

    def _call(self, wanted, *request, **more):
        answer = self._send(*request, **more)
        try:
            return answer.json()[wanted]
        except (ValueError, KeyError, TypeError):
            raise ks_exc.InvalidResponse(answer)

    def _send(self, method, guest, path, body=None, log=True, query=None):
        if isinstance(guest, str):
            guest = Server(guest)
        answer = self._adapter.request(
            guest.path + path, method, json=body,
            params={**guest.query, **(query or {})}, raise_exc=False, log=log)
        if answer.status_code >= 400:
            raise _error(answer)
        return answer


def _body(configuration):
    return {'config': configuration.config,
            'config_name': configuration.config_name,
            'writes': [list(pair) for pair in configuration.writes]}


def _age(max_age):
    return {} if max_age is None else {'max_age': max_age}


def _values(names, answer):
    """Return {name: value or ClickOSError} of the answer to several reads."""
    try:
        return {name: each['value'] if 'value' in each
                else ClickOSError(int(each['error']['status']),
                                  str(each['error']['code']),
                                  str(each['error']['message']))
                for name, each in zip(names, answer, strict=True)}
    except (KeyError, TypeError, ValueError):
        raise ks_exc.ClientException('clickos-api gave an answer that cannot'
                                     ' be understood')


def _revision(answer):
    """Return the Revision of an answer."""
    found = Revision(answer['revision'])
    for key in ('commands', 'edits'):
        setattr(found, key, tuple(answer.get(key, ())))
    return found


def _handler(name):
    return f'/handlers/{parse.quote(name, safe="/")}'


def _error(answer):
    """Return the ClickOSError, or keystoneauth's error if it is another."""
    try:
        error = answer.json()['error']
        return ClickOSError(answer.status_code, str(error['code']),
                            str(error['message']))
    except (ValueError, KeyError, TypeError):
        return ks_exc.from_response(answer, answer.request.method,
                                    answer.request.url)
