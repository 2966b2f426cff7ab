# SPDX-License-Identifier: Apache-2.0
"""Tacker: the tenant's VIM, this very OpenStack with its credentials."""

NAME = 'clickos-lab'


def ensure(demo, settings):
    """Register the VIM as the tenant's default; return its id."""
    found, session = _find(demo), demo.session
    if found and found['auth_url'] == settings.url('keystone', '/v3'):
        return found['id']
    if found:
        session.delete(f'/v1.0/vims/{found["id"]}', endpoint_filter=_TACKER)
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
                          'cert_verify': str(bool(settings.authority))}}})
    return answer.json()['vim']['id']


def find(demo):
    """Return the VIM's id, or None."""
    found = _find(demo)
    return found and found['id']


def _find(demo):
    answer = demo.session.get('/v1.0/vims', endpoint_filter=_TACKER)
    for vim in answer.json()['vims']:
        if vim['name'] == NAME:
            return vim


_TACKER = {'service_type': 'nfv-orchestration', 'interface': 'public'}
