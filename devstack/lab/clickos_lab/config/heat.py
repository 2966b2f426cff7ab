# SPDX-License-Identifier: Apache-2.0
"""Heat, and the compute host on which its servers are names only.

Only a lab for Tacker's stock driver has them. Neutron binds the ports of that
host as if Open vSwitch ran there (clickos_lab/heat.py).
"""

from clickos_lab.config import options
from clickos_lab.config import rabbit
from clickos_lab.config import site as _site

#: The account and service, and the host.
COMPUTE, HOST = 'nova-compute-fake', 'fake-lab'


def packages(state):
    """Return the folder of Heat's packages, which no other service has."""
    return state.root / 'heat'


def write(site):
    """Write heat.conf and its uWSGI file."""
    if not site.has_heat:
        return
    shipped = packages(site.state) / 'etc/heat'
    url = site.settings.url('heat')
    conf = site.write_ini('heat/heat.conf', {
        'DEFAULT': {
            'transport_url': site.rabbit_url('heat', 'heat'),
            'host': 'clickos-lab', 'num_engine_workers': 1,
            'auth_encryption_key': site.settings.passwords['heat_key'],
            'region_name_for_services': _site.REGION,
            'environment_dir': shipped / 'environment.d',
            'template_dir': shipped / 'templates',
            'plugin_dirs': '',
            'heat_metadata_server_url': url,
            'heat_waitcondition_server_url': url},
        'database': site.database('heat'),
        'keystone_authtoken': site.authtoken('heat'),
        'trustee': site.auth('heat'),
        'clients_keystone': {
            'auth_uri': site.settings.url('keystone')},
        'clients': {'ca_file': site.settings.authority}
        if site.settings.authority else {},
        'paste_deploy': {'api_paste_config': shipped / 'api-paste.ini'},
        'oslo_concurrency': site.lock('heat'),
        'oslo_messaging_rabbit': rabbit.options(site)}, 'heat')
    site.write_uwsgi(
        'heat', 'heat', 'heat.wsgi.api:application', more=(
            f'pythonpath = {packages(site.state)}',
            f'pyargv = --config-file {conf}'))


def neutron(site):
    """Return the options of Neutron for ports of the host."""
    if not site.has_heat:
        return {}
    ours = options.DEFAULTS['CLICKOS_MECHANISM_DRIVERS']
    return {'ml2': {'mechanism_drivers': f'{ours},openvswitch'}}


def tacker(site):
    """Return the options of Tacker for VNFs of its stock driver."""
    if not site.has_heat:
        return {}
    return {'clickos': {'stock_driver': True},
            'openstack_vim': {'stack_retry_wait': 1, 'stack_retries': 120}}


def write_compute(site, common):
    """Write the configuration of its nova-compute.

    :param common: of all services of Nova
    """
    if not site.has_heat:
        return
    site.write_ini(f'nova/{COMPUTE}.conf', options.merged(common, {
        'DEFAULT': {'host': HOST, 'compute_driver': 'fake.FakeDriver',
                    'transport_url': site.rabbit_url(COMPUTE, 'nova'),
                    'report_interval': 2, 'update_resources_interval': 10,
                    'vif_plugging_is_fatal': False,
                    'vif_plugging_timeout': 0,
                    'instances_path': site.folder(COMPUTE, 'instances'),
                    'state_path': site.folder(COMPUTE, 'state')},
        'oslo_concurrency': {'lock_path': site.folder(COMPUTE, 'lock')}}),
        COMPUTE)
