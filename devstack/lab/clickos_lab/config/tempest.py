# SPDX-License-Identifier: Apache-2.0
"""Tempest, with the options of our plugin."""

import shlex

from clickos_lab import bounds
from clickos_lab.config import options
from clickos_lab.config import site as _site
from clickos_lab import paths


def write(site, folder, csars, references):
    """Write tempest.conf into a folder that ``tempest init`` made.

    :param csars: folder of the packages
    :param references: ids: ``image``, ``flavor``; path
        ``combine_program``; ``second_zone``, None without a second host;
        ``has_xen``; ``linux_image``, None without one;
        ``second_xen_zone``, None without a second Xen host;
        ``has_heat``
    """
    host_command = [
        'env', f'CLICKOS_STATE={site.state.root}',
        f'PYTHONPATH={paths.REPO}/devstack/lab',
        str(site.state.tool('python')), '-m', 'clickos_lab', 'host']
    shared = options.of('tempest', CLICKOS_CSARS=str(csars),
                        CLICKOS_HOST_COMMAND=shlex.join(host_command))
    _write(site, folder, shared, {
        'auth': {'create_isolated_networks': False},
        'compute': {
            'image_ref': references['image'],
            'image_ref_alt': references['image'],
            'flavor_ref': references['flavor'],
            'flavor_ref_alt': references['flavor']},
        'clickos': {
            'bounds_path': bounds.path().resolve(),
            'faults_path': faults_path(site.state),
            'combine_program': references['combine_program'],
            'heat': references['has_heat'],
            **_others(host_command, references)}})


def faults_path(state):
    """Return the file with a line for each operation during an outage."""
    return state.data / 'faults.jsonl'


def _others(host_command, references):
    """Return the options of hosts besides the first one."""
    found = {}
    if references['second_zone']:
        found['second_zone'] = references['second_zone']
        found['second_host_command'] = shlex.join(
            [*host_command, '--on', 'second'])
    if references['has_xen']:
        found['xen_host_command'] = shlex.join([*host_command, '--on', 'xen'])
    if references['linux_image']:
        found['linux_image'] = references['linux_image']
    if references['second_xen_zone']:
        found['second_xen_zone'] = references['second_xen_zone']
        found['second_xen_host_command'] = shlex.join(
            [*host_command, '--on', 'second-xen'])
    return found


def write_own(site, folder, references):
    """Write tempest.conf for Tempest's own tests of Nova and Neutron.

    :param references: ids: ``image``, ``image_alt``, ``flavor``,
        ``flavor_alt``, ``public`` (a network); names: ``public_name``,
        ``shared``, ``extensions``; number of hosts: ``hosts``
    """
    _write(site, folder, options.of('tempest-compute'), {
        'auth': {'create_isolated_networks': False},
        'compute': {
            'image_ref': references['image'],
            'image_ref_alt': references['image_alt'],
            'flavor_ref': references['flavor'],
            'flavor_ref_alt': references['flavor_alt'],
            'min_compute_nodes': references['hosts'],
            'fixed_network_name': references['shared'],
            'max_microversion': 'latest'},
        'network': {'public_network_id': references['public'],
                    'floating_network_name': references['public_name']},
        'network-feature-enabled': {
            'api_extensions': references['extensions'],
            'floating_ips': True}})


def _write(site, folder, *more):
    trust = {'ca_certificates_file': site.settings.authority} \
        if site.settings.authority else {}
    site.write_ini(folder / 'etc/tempest.conf', options.merged({
        # With the bodies of requests.
        'DEFAULT': {'log_file': site.state.log / 'tempest.log',
                    'debug': True},
        'oslo_concurrency': {'lock_path': folder / 'lock'},
        'auth': {
            'use_dynamic_credentials': True,
            'tempest_roles': 'member', 'admin_username': 'admin',
            'admin_password': site.settings.passwords['admin'],
            'admin_project_name': 'admin', 'admin_domain_name': 'Default'},
        'identity': {**trust, 'auth_version': 'v3', 'region': _site.REGION,
                     'uri_v3': site.settings.url('keystone', '/v3')},
        'compute': {'build_interval': 1, 'min_compute_nodes': 1},
        'compute-feature-enabled': {'vnc_console': False},
        'validation': {'run_validation': False},
        'service_available': {
            'cinder': False, 'swift': False, 'horizon': False,
            'neutron': True, 'glance': True, 'nova': True}}, *more))
