# SPDX-License-Identifier: Apache-2.0
"""Nova. Each nova-compute has a file of its own: it needs no database."""

from clickos_lab.config import heat
from clickos_lab.config import hosts
from clickos_lab.config import options
from clickos_lab.config import rabbit


def write(site):
    """Write nova.conf, nova-compute.conf, the paste and uWSGI files."""
    common = _common(site)
    # Not policy.yaml: nova-compute would read that, and may not.
    policy = options.source('devstack/files/nova-policy.yaml')
    policy = site.write('nova/api-policy.yaml', policy.read_text(), 'nova')
    site.write_ini('nova/nova.conf', options.merged(common, {
        'api': {'auth_strategy': 'keystone'},
        'api_database': site.database('nova_api', 'nova'),
        'database': site.database('nova'),
        'conductor': {'workers': 1},
        'oslo_policy': {'policy_file': policy},
        'scheduler': {'workers': 1},
        'keystone_authtoken': site.authtoken('nova'),
        **_zones(site),
        'filter_scheduler': {
            'enabled_filters': options.DEFAULTS['CLICKOS_FILTERS'],
            'track_instance_changes': False}}), 'nova')
    for host in site.compute_hosts:
        _write_compute(site, common, host)
    heat.write_compute(site, common)
    paste = site.state.venv / 'etc/nova/api-paste.ini'
    site.write('nova/api-paste.ini', paste.read_text(), 'nova')
    site.write_uwsgi('nova', 'nova', 'nova.wsgi.osapi_compute:application')


def _zones(site):
    """Servers without a zone run in that of the first host."""
    if len({host.zone for host in site.compute_hosts}) < 2:
        return {}
    return {'DEFAULT': {'default_schedule_zone': hosts.PROCESS.zone}}


def _write_compute(site, common, host):
    name = f'nova-compute{host.suffix}'
    shared = [options.of(group, CLICKOS_COSMOSD_SOCKET=str(
        site.state.run / host.nova_socket)) for group in host.groups]
    site.write_ini(f'nova/{name}.conf', options.merged(common, *shared, {
        'DEFAULT': {'host': host.name,
                    'transport_url': site.rabbit_url(name, 'nova'),
                    # seconds; the lab waits for the first report
                    'report_interval': 2,
                    # Placement can miss the first update when all start.
                    'update_resources_interval': 10,
                    'instances_path': site.folder(name, 'instances'),
                    'state_path': site.folder(name, 'state')},
        'oslo_concurrency': {'lock_path': site.folder(name, 'lock')},
        'clickos': {**site.auth('nova'), **host.options}}), name)


def _common(site):
    return options.merged(options.of('nova'), {
        'DEFAULT': {
            **site.base('nova'), 'my_ip': '127.0.0.1',
            'enabled_apis': 'osapi_compute',
            'vif_plugging_timeout':
                options.DEFAULTS['CLICKOS_PLUGGING_TIMEOUT'],
            'vif_plugging_is_fatal':
                options.DEFAULTS['CLICKOS_PLUGGING_IS_FATAL']},
        'service_user': site.auth('nova'),
        'placement': site.auth('placement'),
        'neutron': site.auth('neutron'),
        'glance': {'api_servers': site.settings.url('glance')},
        'oslo_concurrency': site.lock('nova'),
        'oslo_messaging_rabbit': rabbit.options(site)})
