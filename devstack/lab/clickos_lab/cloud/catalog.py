# SPDX-License-Identifier: Apache-2.0
"""Keystone: the administrator, service users, services, endpoints."""

from clickos_lab.config import options
from clickos_lab.config import site
from clickos_lab import shell

#: service user: (service type, path of its endpoint)
SERVICES = {
    'glance': ('image', ''), 'placement': ('placement', ''),
    'neutron': ('network', ''), 'nova': ('compute', '/v2.1'),
    'tacker': ('nfv-orchestration', '/'),
    options.DEFAULTS['CLICKOS_SERVICE']: (
        options.DEFAULTS['CLICKOS_SERVICE_TYPE'], '')}
_INTERFACES = ('public', 'internal', 'admin')


def bootstrap(state, settings):
    """Make the administrator and keystone's own endpoints.

    The password travels in the environment, where ps does not show it.
    """
    # Without a version: Tacker 15 appends its own.
    url = settings.url('keystone')
    env = shell.environment(
        state, OS_BOOTSTRAP_PASSWORD=settings.passwords['admin'])
    shell.run([state.tool('keystone-manage'), '--config-file',
               state.etc / 'keystone/keystone.conf', 'bootstrap',
               '--bootstrap-region-id', site.REGION,
               '--bootstrap-public-url', url,
               '--bootstrap-internal-url', url,
               '--bootstrap-admin-url', url],
              state.log / 'keystone-bootstrap.log', env=env)


def fill(cloud, settings):
    """Make the projects, users, roles, services and endpoints."""
    identity = cloud.identity
    demo = _project(identity, 'demo')
    for name, (kind, path) in SERVICES.items():
        add(identity, settings, name, kind, path)
    user = _user(identity, 'demo', demo, settings.passwords['demo'])
    identity.assign_project_role_to_user(
        demo, user, _role(identity, 'member'))


def add(identity, settings, name, kind, path):
    """Make the user and the endpoints of a service."""
    service = _project(identity, 'service')
    user = _user(identity, name, service, settings.passwords[name])
    for role in ('admin', 'service'):
        identity.assign_project_role_to_user(service, user,
                                             _role(identity, role))
    _endpoints(identity, name, kind, settings.url(name, path))


def _project(identity, name):
    return identity.find_project(name) or identity.create_project(
        name=name, domain_id='default')


def _role(identity, name):
    return identity.find_role(name) or identity.create_role(name=name)


def _user(identity, name, project, password):
    return identity.find_user(name) or identity.create_user(
        name=name, password=password, domain_id='default',
        default_project_id=project.id)


def _endpoints(identity, name, kind, url):
    service = identity.find_service(name) or identity.create_service(
        name=name, type=kind)
    have = {e.interface: e for e in identity.endpoints(service_id=service.id)}
    for interface in _INTERFACES:
        if interface not in have:
            identity.create_endpoint(
                service_id=service.id, interface=interface, url=url,
                region_id=site.REGION)
        elif have[interface].url != url:
            identity.update_endpoint(have[interface], url=url)
