# SPDX-License-Identifier: Apache-2.0
"""Tacker: the tenant's VIM, this very OpenStack with its credentials."""

NAME = 'clickos-lab'


def ensure(demo, settings):
    """Register the VIM as the tenant's default; return its id."""
    found = find(demo)
    if found:
        return found
    session = demo.session
    answer = session.post(
        '/v1.0/vims', endpoint_filter=_TACKER, json={'vim': {
            'name': NAME, 'type': 'openstack', 'is_default': True,
            'auth_url': settings.url('keystone', '/v3'),
            'description': 'the lab itself',
            'vim_project': {'name': 'demo',
                            'project_domain_name': 'Default'},
            'auth_cred': {'username': 'demo',
                          'password': settings.passwords['demo'],
                          'user_domain_name': 'Default',
                          'cert_verify': 'False'}}})
    return answer.json()['vim']['id']


def find(demo):
    """Return the VIM's id, or None."""
    answer = demo.session.get('/v1.0/vims', endpoint_filter=_TACKER)
    for vim in answer.json()['vims']:
        if vim['name'] == NAME:
            return vim['id']


_TACKER = {'service_type': 'nfv-orchestration', 'interface': 'public'}
