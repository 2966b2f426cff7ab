# SPDX-License-Identifier: Apache-2.0
"""Tacker: the tenant's VIM, this very OpenStack with its credentials."""

from clickos_lab import errors

NAME = 'clickos-lab'


def ensure(demo, settings):
    """Register the VIM as the tenant's default; return its id."""
    found, session = _find(demo), demo.session
    if found and found['auth_url'] == settings.url('keystone', '/v3'):
        return found['id']
    if found:
        _remove(session, found)
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


def _remove(session, vim):
    """Remove the VIM of a lab with TLS, or of one without.

    :raises LabError: if VNFs use it
    """
    answer = session.delete(f'/v1.0/vims/{vim["id"]}', raise_exc=False,
                            endpoint_filter=_TACKER)
    if not answer.ok:
        raise errors.LabError(
            f'VIM {vim["name"]}: VNFs of this lab have it with the URL '
            f'{vim["auth_url"]}; start the lab as before and terminate them, '
            'or make clean-demo')


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
