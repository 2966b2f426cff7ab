# SPDX-License-Identifier: Apache-2.0
"""Which APIs a run of tests touched: each one must have succeeded once.

The code lists what there is: the OpenAPI description of clickos-api, the
routes that Tacker serves, the entry points of the openstack command. The logs
of Tempest and clickos-api tell what succeeded.
"""

import configparser
import re

from clickos_lab import paths

#: What Tacker serves, by the prefix that its urlmap takes away.
_TACKER = {'vims': '/v1.0', 'packages': '/vnfpkgm/v1',
           'lifecycle': '/vnflcm/v1'}
#: Bodies of POST .../action, and other calls, that reach the Nova driver.
_NOVA = (
    'POST /v2.1/servers', 'DELETE /v2.1/servers/{}',
    'GET /v2.1/servers/{}/diagnostics',
    'POST /v2.1/servers/{}/os-interface',
    'DELETE /v2.1/servers/{}/os-interface/{}',
    *(f'POST /v2.1/servers/{{}}/action {name}' for name in (
        'reboot', 'os-stop', 'os-start', 'suspend', 'resume', 'rebuild',
        'os-getConsoleOutput')))
_NEUTRON = (
    'POST /v2.0/ports', 'PUT /v2.0/ports/{}', 'DELETE /v2.0/ports/{}',
    'POST /v2.0/security-groups', 'POST /v2.0/security-group-rules',
    'DELETE /v2.0/security-group-rules/{}', 'GET /v2.0/agents',
    *(f'{method} /v2.0/sfc/{kind}{place}' for kind in (
        'port_pairs', 'port_pair_groups', 'flow_classifiers', 'port_chains')
      for method, place in (('POST', ''), ('DELETE', '/{}'))),
    'PUT /v2.0/sfc/port_chains/{}')
#: Calls whose only answer here is a refusal, with its status. An operation
#: can be canceled only within the second in which it begins, and no service of
#: the lab takes notifications.
_REFUSED = {
    'POST /vnflcm/v1/vnf_lcm_op_occs/{}/cancel': 409,
    'POST /vnflcm/v1/subscriptions': 400,
    'GET /vnflcm/v1/subscriptions/{}': 404,
    'DELETE /vnflcm/v1/subscriptions/{}': 404}
#: of Tempest: Request (CLASS:TEST): STATUS METHOD URL
_TEMPEST = re.compile(
    r'Request \([^)]*\): (?P<status>\d{3}) (?P<method>[A-Z]+) '
    r'https?://[^/\s]+(?P<path>/\S*)')
#: of uWSGI: ADDRESS METHOD PATH STATUS
_UWSGI = re.compile(r'^\S+ (?P<method>[A-Z]+) (?P<path>/\S*) '
                    r'(?P<status>\d{3}) ', re.MULTILINE)
#: of Tempest, behind a request
_ACTION = re.compile(r'POST \S+(/v2\.1/servers/[^/\s]+/action)\b[^{]*'
                     r'(?:\{[^}]*\}[^{]*)?Body: \{"([\w-]+)"')
_COMMAND = re.compile(r'openstack (clickos .*): exit status 0$',
                      re.MULTILINE)
_PLACES = {'{}': r'[^/]+', '{...}': r'.+', '(.json)': r'(?:\.json)?'}


def commands():
    """Return the words of each command, such as "clickos vnf show"."""
    setup = configparser.ConfigParser()
    setup.read(paths.REPO / 'setup.cfg')
    lines = setup['options.entry_points']['openstack.clickos.v1']
    return [line.partition('=')[0].strip().replace('_', ' ')
            for line in lines.strip().splitlines()]


def operations():
    """Return METHOD PATH of each operation, with {} for what varies."""
    # Both need the virtual environment.
    from clickos_api.http import openapi
    from tacker_clickos import routes
    found = {f'{method.upper()} {_general(path)}'
             for path, methods in openapi.description()['paths'].items()
             for method in methods if method != 'parameters'}
    found |= {f'{method} {_TACKER[api]}{path}'
              for api, served in routes.APIS.items()
              for path, methods in served for method in methods.split()}
    return sorted({*found, *_NOVA, *_NEUTRON})


def _general(path):
    """Servers and VNFs are one resource, whatever its parameters."""
    return re.sub(r'\{\w+\}', '{}', path).replace('/v1/vnfs/',
                                                  '/v1/servers/')


def untouched(text):
    """Return what did not succeed in a run.

    :param text: the logs of Tempest and clickos-api
    """
    seen = {(int(found['status']), found['method'],
             found['path'].partition('?')[0].replace('/v1/vnfs/',
                                                     '/v1/servers/'))
            for form in (_TEMPEST, _UWSGI) for found in form.finditer(text)}
    actions = {(path, name) for path, name in _ACTION.findall(text)}
    typed = _COMMAND.findall(text)
    return [*(each for each in operations()
              if not _is_seen(each, seen, actions)),
            *(f'openstack {each}' for each in commands()
              if not any(f'{line} '.startswith(f'{each} ')
                         for line in typed))]


def _is_seen(operation, seen, actions):
    method, path, *action = operation.split()
    pattern = re.compile(''.join(
        _PLACES.get(part) or re.escape(part)
        for part in re.split(r'(\{\}|\{\.\.\.\}|\(\.json\))', path)) + '/?')
    if action:
        return any(pattern.fullmatch(where) and name == action[0]
                   for where, name in actions)
    refusal = _REFUSED.get(operation)
    return any(
        method == found and pattern.fullmatch(where)
        and (200 <= status < 300 or status == refusal)
        for status, found, where in seen)


def check(text):
    """Print what a run did not touch; 0 if that is nothing."""
    missing = untouched(text)
    for each in missing:
        print(f'not touched: {each}')
    total = len(operations()) + len(commands())
    print(f'{total - len(missing)} of {total} operations and commands were'
          ' touched', flush=True)
    return int(bool(missing))
