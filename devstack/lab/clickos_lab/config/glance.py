# SPDX-License-Identifier: Apache-2.0
"""Glance, with images as files."""

from clickos_lab.config import options


def write(site):
    """Write glance-api.conf and its uWSGI file."""
    paste = site.state.venv / 'etc/glance/glance-api-paste.ini'
    site.write_ini('glance/glance-api.conf', options.merged({
        'DEFAULT': {'enabled_backends': 'files:file',
                    'bind_port': site.settings.ports['glance']},
        'database': site.database('glance'),
        'keystone_authtoken': site.authtoken('glance'),
        'paste_deploy': {'flavor': 'keystone', 'config_file': paste},
        'glance_store': {'default_backend': 'files'},
        'files': {'filesystem_store_datadir':
                  site.folder('glance', 'images')},
        'os_glance_staging_store': {
            'filesystem_store_datadir': site.folder('glance', 'staging')},
        'os_glance_tasks_store': {
            'filesystem_store_datadir': site.folder('glance', 'tasks')},
        'oslo_concurrency': site.lock('glance')},
        options.of('image')), 'glance')
    site.write_uwsgi('glance', 'glance', 'glance.wsgi.api:application')
