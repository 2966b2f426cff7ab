# SPDX-License-Identifier: Apache-2.0
"""The shapes of requests and answers, as JSON Schema.

A shape's description says what a refusal expects, and what the documents
show. The service checks requests with these shapes, and OpenAPI has them.
"""

from clickos_client import flows
from clickos_client import limits
from clickos_client import outcomes
from clickos_client import port_roles

from clickos_api.http import pages
from clickos_api.state import sharing
from clickos_api.state import states

MAX_NUMBER = 2 ** 53
#: Characters of a project's id.
PROJECT_LENGTH = 64
SECRET_BYTES = 4096


def text(description='a text', **more):
    """Return the shape of a text."""
    return {'type': 'string', 'description': description, **more}


def items(description, item, least=0, most=None):
    """Return the shape of a list."""
    shape = {'type': 'array', 'description': description, 'items': item,
             'minItems': least}
    return shape if most is None else {**shape, 'maxItems': most}


def pair(description, first, second):
    """Return the shape of a list of two."""
    return {'type': 'array', 'description': description, 'minItems': 2,
            'maxItems': 2, 'prefixItems': [first, second]}


def answer(*optional, **properties):
    """Return the shape of an object to which later versions may add."""
    return {'type': 'object', 'properties': properties,
            'required': [name for name in properties if name not in optional]}


def body(*optional, **properties):
    """Return the shape of an object that has these keys only."""
    names = ', '.join(f'"{name}"' for name in properties)
    return {**answer(*optional, **properties), 'additionalProperties': False,
            'description': f'an object with {names}'}


def listed(key, item):
    """Return the shape of an answer with one list."""
    return answer(**{key: {'type': 'array', 'items': item}})


def paged(key, item):
    """Return the shape of an answer with a list that may come in pages."""
    link = answer(rel={'enum': ['next']}, href={'type': 'string'})
    links = f'{key}_links'
    return answer(links, **{
        key: {'type': 'array', 'items': item},
        links: {'type': 'array', 'items': link, 'maxItems': 1}})


_TEXT = {'type': 'string'}
_BOOLEAN = {'type': 'boolean'}
UUID = text('a UUID', format='uuid')
NUMBER = {'type': 'integer', 'minimum': 0, 'maximum': MAX_NUMBER,
          'description': f'a number of 0 to {MAX_NUMBER}'}
PROJECT = text(f'1 to {PROJECT_LENGTH} characters', minLength=1,
               maxLength=PROJECT_LENGTH)
VNFC = text(maxLength=255)
#: [element.]handler; a compound element's parts are joined by '/'.
HANDLER = text('ELEMENT.HANDLER', maxLength=limits.HANDLER_NAME,
               pattern='^([A-Za-z0-9_@/]+[.])?[A-Za-z0-9_]+$')
PARAMETER = text(maxLength=limits.PARAMETER_BYTES, format='parameter',
                 pattern=r'^[^\x00-\x1f\x7f-\x9f]*$')
VALUE = text(format='plain')
_READ = {'if': {'type': 'array'}, 'else': HANDLER, 'then': pair(
    'HANDLER or [HANDLER, PARAMETER]', HANDLER, PARAMETER)}
MAX_AGE = {'type': 'number', 'minimum': 0, 'maximum': limits.MAX_AGE_S,
           'description': f'seconds from 0 to {limits.MAX_AGE_S}'}
_NAME = text('1 to 64 letters, digits, ".", "_" or "-"',
             pattern='^[A-Za-z0-9_.-]{1,64}$')
_HOP = text('1 to 32 letters, digits and _',
            pattern='^[A-Za-z_][A-Za-z0-9_]{0,31}$')
_WRITE = pair('[HANDLER, VALUE]', HANDLER, VALUE)
_STATE_WRITES = items(
    f'a list of at most {limits.WRITES} [HANDLER, VALUE]', _WRITE,
    most=limits.WRITES)
#: document.replacement() says what a configuration may be.
_CONFIG = {'config': text('a Click configuration', minLength=1),
           'config_name': _NAME}

VALUE_BODY = body(value=VALUE)
WRITES = body(writes=items('a list of at least one [HANDLER, VALUE]', _WRITE,
                           1, limits.WRITES))
READS = body('max_age', names=items(
    f'a list of 1 to {limits.READS} handlers', _READ, 1, limits.READS),
    max_age={**MAX_AGE, 'type': ['number', 'null']})
FLOWS = body(to=items(f'a list of 1 to {flows.MAX_TARGETS} servers', UUID, 1,
                      flows.MAX_TARGETS))
CONFIGURATION = body('config_name', **_CONFIG)
REVISION_BODY = body(revision=NUMBER)
STATE_BODY = body('config_name', 'writes', **_CONFIG, writes=_STATE_WRITES)
REBASE = body(
    'config_name', 'writes', 'keep', **_CONFIG, writes=_STATE_WRITES, keep={
        **items(f'a list of at most {limits.WRITES} handlers', HANDLER,
                most=limits.WRITES), 'type': ['array', 'null']})
START = body(number=NUMBER, revision=NUMBER, incarnation=UUID, server_id=UUID,
             project_id=PROJECT)
SECRET_BODY = body(name=_NAME, value=text(
    'a text', minLength=1, maxLength=SECRET_BYTES, format='plain',
    writeOnly=True))
ROLES = body(roles=items(
    'a list of ' + ', '.join(port_roles.ROLES),
    {'enum': list(port_roles.ROLES),
     'description': ' or '.join(port_roles.ROLES)},
    most=len(port_roles.ROLES)))
FUSE = body(server=UUID, hops=items(
    f'a list of 2 to {limits.CHAIN_HOPS}',
    body(name=_HOP, server=UUID, group=UUID), 2, limits.CHAIN_HOPS))
_KIND = {'enum': list(sharing.KINDS),
         'description': ' or '.join(sharing.KINDS)}
_TOTAL = {'type': 'integer', 'minimum': 0, 'maximum': sharing.MAX_TOTAL,
          'description': f'a number of 0 to {sharing.MAX_TOTAL}'}
LIMITS = body(
    limits=items(f'a list of 1 to {sharing.MAX_LIMITS} limits', body(
        name=_HOP, kind=_KIND, handler=HANDLER, total=_TOTAL),
        1, sharing.MAX_LIMITS),
    servers=items(f'a list of at most {sharing.MAX_MEMBERS} servers', UUID,
                  most=sharing.MAX_MEMBERS))

_CHANGE = answer(
    'revision', 'error', number=NUMBER, created_at=_TEXT,
    status={'enum': [states.PENDING, states.APPLIED, *outcomes.TEXTS]},
    revision=NUMBER, error=answer(code=_TEXT, message=_TEXT))
_NAMES = {'type': 'array', 'items': _TEXT}
#: Writes of commands and edits are not repeated at a start of the guest.
_REVISION = answer('commands', 'edits', revision=NUMBER, commands=_NAMES,
                   edits=_NAMES)
_PENDING = answer(change=answer(number=NUMBER, status={'enum': ['pending']}))
CHANGED = {200: _REVISION, 202: _PENDING}
STATE = answer(
    'secrets', 'configuration', 'project_id', revision=NUMBER, number=NUMBER,
    writes={'type': 'array', 'items': _NAMES}, project_id=_TEXT,
    secrets={'type': 'object', 'additionalProperties': _TEXT},
    configuration=answer('replaces', config=_TEXT, config_name=_TEXT,
                         replaces=_TEXT))
SECRET = answer(id=UUID, name=_NAME, reference=_TEXT, created_at=_TEXT)
#: Seconds since the request to the guest for a value.
_AGE = {'type': 'number', 'minimum': 0}
VALUE_ANSWER = answer('parameter', 'age', name=_TEXT, parameter=_TEXT,
                      value=_TEXT, age=_AGE)
VALUES = listed('values', {'oneOf': [VALUE_ANSWER, answer(
    'parameter', name=_TEXT, parameter=_TEXT, error=answer(
        code=_TEXT, message=_TEXT, status={'type': 'integer'}))]})
HANDLERS = paged('handlers', answer(name=_TEXT, read=_BOOLEAN,
                                    write=_BOOLEAN))
PORTS = paged('ports', answer(
    id={'type': ['string', 'null']}, mac_address=_TEXT, link_up=_BOOLEAN,
    counters={'type': 'object', 'additionalProperties': {
        'type': 'integer'}}))
EVENTS = listed('events', answer(
    request_id=_TEXT, action=_TEXT, details=_TEXT,
    result={'type': ['string', 'null']},
    finished_at={'type': ['string', 'null']}))
FLOWS_ANSWER = answer(flows=NUMBER)
CHANGES = paged('changes', _CHANGE)
CHANGE = answer(change=_CHANGE)
STATE_ID = answer(id=UUID)
REBASED = answer(id=UUID, changed=_BOOLEAN)
FUSION = answer(fusion=answer(server=UUID, hops={
    'type': 'array', 'items': answer(name=_HOP, group=UUID)}))
SHARED = listed('limits', answer(
    name=_TEXT, kind=_KIND, handler=_TEXT, total=NUMBER, used=NUMBER,
    shared=NUMBER, guests={'type': 'array', 'items': answer(
        server=UUID, share=NUMBER, used=NUMBER, is_silent=_BOOLEAN)}))
CHAIN = answer(chain={'type': 'object'})
PACKAGES = paged('packages', answer(name=_TEXT, product=_TEXT,
                                    provider=_TEXT, version=_TEXT,
                                    description=_TEXT))
PACKAGE = answer(package=answer(name=_TEXT, content=_TEXT))
ERROR = answer(error=answer(code=_TEXT, message=_TEXT))

#: Parameters of lists.
PAGE = ('limit', 'marker')
#: Parameters of paths and queries: {name: (place, shape, meaning)}.
PARAMETERS = {
    'id': ('path', UUID, None),
    'name': ('path', HANDLER, None),
    'package': ('path', text('a name', maxLength=255,
                             pattern='^[A-Za-z0-9_.-]+$'), None),
    'number': ('path', NUMBER, None),
    'vnfc': ('query', VNFC, 'VDU or VNFC, if the VNF has several guests'),
    'project_id': ('query', PROJECT,
                   'Whose state it has to be, if a service asks'),
    'parameter': ('query', PARAMETER,
                  'For a handler that takes one, such as lookup; the answer'
                  ' is always new'),
    'max_age': ('query', MAX_AGE,
                'Seconds that the value may be old; without it, the guest'
                ' answers'),
    'limit': ('query', text(f'a number of 1 to {pages.MAX_LIMIT}',
                            pattern='^[0-9]{1,4}$'),
              'Entries of a page; without it, the whole list'),
    'marker': ('query', text('the last entry of a page', maxLength=255),
               'The last entry of the page before: its name, id, number or'
               ' MAC address'),
    'secrets': ('query', _TEXT,
                'true: with the values of its secrets'),
}
