# SPDX-License-Identifier: Apache-2.0
"""VNFs and their operations, read from the answers of Tacker."""

import dataclasses
import json
import uuid

from clickos_client import outcomes
from clickos_client import plain_json

#: Key of the server metadata that names a guest's VNF instance.
SERVER_KEY = 'clickos_vnf'
#: The same for its name, which people read.
SERVER_NAME_KEY = 'clickos_vnf_name'
#: The property of an image that names the groups of elements in it.
IMAGE_GROUPS = 'clickos_groups'
#: The UUID version 5 of groups of guests that share limits.
_LIMITS = 'limits of '
_UNDER_WAY = ('STARTING', 'PROCESSING', 'ROLLING_BACK')
_FAILED = ('FAILED_TEMP', 'FAILED')
#: Characters of a request that is shown; one may have 2 MB.
MAX_REQUEST = 64 * 1024
#: Tacker 16 puts the text of an object where the reason belongs.
_WRAPPED = ('ProblemDetails(', "detail='", "',status=")


def limits_group(vnf_id, vdu):
    """Return the id under which clickos-api has the limits of a VDU."""
    return str(uuid.uuid5(uuid.UUID(vnf_id), _LIMITS + vdu))


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operation occurrence."""

    id: str
    vnf_id: str
    name: str
    state: str
    began: str
    reason: str
    request: str

    @classmethod
    def of(cls, body):
        """Return the operation of an answer's object."""
        reason = (body.get('error') or {}).get('detail') or ''
        return cls(body['id'], body['vnfInstanceId'],
                   body.get('operation') or '',
                   body.get('operationState') or '',
                   body.get('startTime') or '',
                   _unwrapped(reason),
                   _indented(body.get('operationParams'), body['id']))

    @property
    def under_way(self):
        """Return whether it is not over."""
        return self.state in _UNDER_WAY

    @property
    def failed(self):
        """Return whether it failed."""
        return self.state in _FAILED


@dataclasses.dataclass(frozen=True)
class Guest:
    """A guest of a VNF: the VNFC's id, its VDU, its server, its state.

    :ivar name: the short name of a guest, such as VDU1-0
    """

    id: str
    vdu: str
    server_id: str
    state: str
    name: str = ''


@dataclasses.dataclass(frozen=True)
class Vnf:
    """A VNF instance; status is one of STATUSES."""

    id: str
    name: str
    description: str
    vnfd_id: str
    product: str
    flavour: str
    launched: bool
    guests: tuple
    properties: dict
    verdict: dict
    #: {VDU: {output: handler}}
    outputs: dict
    #: VDUs whose guests share limits
    shared: tuple
    #: the aspects that scale: (name, level)
    scale: tuple
    operation: Operation | None
    #: connections.Connection of each port, if a caller added them
    connections: tuple = ()

    @classmethod
    def of(cls, body, operation):
        """Return the VNF of an answer's object and its last operation."""
        info = body.get('instantiatedVnfInfo') or {}
        metadata = body.get('metadata') or {}
        states = _document(metadata, 'clickosState')
        product = ' '.join(filter(None, (
            body.get('vnfProductName'), body.get('vnfSoftwareVersion'))))
        return cls(
            body['id'], body.get('vnfInstanceName') or body['id'],
            body.get('vnfInstanceDescription') or '', body.get('vnfdId'),
            product, info.get('flavourId') or '',
            body.get('instantiationState') == 'INSTANTIATED',
            _guests(info.get('vnfcResourceInfo') or (), states),
            _document(metadata, 'clickosProperties'),
            _document(metadata, 'clickosUpdate'),
            _document(metadata, 'clickosOutputs'),
            _names(metadata, 'clickosShared'),
            tuple((each.get('aspectId'), each.get('scaleLevel'))
                  for each in info.get('scaleStatus') or ()), operation)

    @property
    def shown_properties(self):
        """Return the properties in force as texts."""
        return {name: shown(value)
                for name, value in self.properties.items()}

    def outputs_of(self, vdu):
        """Return {output: handler} of the guests of a VDU."""
        found = self.outputs.get(vdu)
        return {str(name): str(handler) for name, handler in
                (found.items() if isinstance(found, dict) else ())}

    @property
    def status(self):
        """Return a word for the whole VNF."""
        operation = self.operation
        if operation and operation.under_way:
            return 'working'
        if operation and operation.failed:
            return 'failed'
        if not self.launched:
            return 'new'
        if any(guest.state != 'ACTIVE' for guest in self.guests):
            return 'degraded'
        return 'active'

    @property
    def reason(self):
        """Return why the status is what it is; may be empty."""
        if self.status in ('working', 'failed'):
            return f'{self.operation.name} {self.operation.reason}'.strip()
        if self.status == 'degraded':
            return ', '.join(f'{guest.vdu}: {guest.state}'
                             for guest in self.guests)
        return ''

    @property
    def outcome(self):
        """Return the word of outcomes for the last update, or nothing."""
        word = self.verdict.get('verdict')
        return word if isinstance(word, str) and word in outcomes.TEXTS \
            else ''

    @property
    def verdict_number(self):
        """Return the number of the last verdict; a new one has another."""
        return self.verdict.get('number')

    @property
    def refusal(self):
        """Return why the last update is not in force, or nothing."""
        if not self.outcome:
            return ''
        return str(self.verdict.get('message')
                   or outcomes.TEXTS[self.outcome])

    @property
    def no_guest(self):
        """Return why the VNF has no guest."""
        return outcomes.no_guest(self.id, self.launched)


def _unwrapped(text):
    """Return the detail of a wrapped reason, in linear time."""
    lead, begin, end = _WRAPPED
    inner = text.partition(begin)[2].rpartition(end)[0]
    return inner if text.startswith(lead) and inner else text


def _indented(params, operation_id):
    """Return the body of an operation's request as the CLI takes it."""
    if isinstance(params, str) and len(params) > MAX_REQUEST:
        return (f'{len(params)} characters; openstack vnflcm op show'
                f' {operation_id} has them')
    try:
        value = plain_json.loads(params) if isinstance(params, str) else params
        return json.dumps(value, indent=1) if value else ''
    except (ValueError, RecursionError):
        return ''


def shown(value):
    """Return a property's value as text, a list with a line for each."""
    if isinstance(value, list):
        return '\n'.join(map(shown, value))
    return value if isinstance(value, str) else json.dumps(value)


def _guests(bodies, states):
    """Return the guests; Tacker does not show their names, VDU and number."""
    numbers, found = {}, []
    for body in bodies:
        vdu = body.get('vduId') or ''
        numbers[vdu] = numbers.get(vdu, -1) + 1
        found.append(_guest(body, states, f'{vdu}-{numbers[vdu]}'))
    return tuple(found)


def _guest(body, states, name):
    resource = body.get('computeResource') or {}
    return Guest(body['id'], body.get('vduId') or '',
                 resource.get('resourceId') or '',
                 str(states.get(body['id'], 'ACTIVE')), name)


def _names(metadata, name):
    """Return a list of names that is kept as JSON text."""
    try:
        value = plain_json.loads(metadata.get(name) or '[]')
    except (ValueError, TypeError, RecursionError):
        return ()
    return tuple(each for each in value if isinstance(each, str)) \
        if isinstance(value, list) else ()


def _document(metadata, name):
    """Return an object that is kept as JSON text."""
    try:
        value = plain_json.loads(metadata.get(name) or '{}')
    except (ValueError, TypeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
