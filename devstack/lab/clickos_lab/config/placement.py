# SPDX-License-Identifier: Apache-2.0
"""Placement."""


def write(site):
    """Write placement.conf and its uWSGI file."""
    site.write_ini('placement/placement.conf', {
        'DEFAULT': {'debug': False},
        'placement_database': site.database('placement'),
        'api': {'auth_strategy': 'keystone'},
        'keystone_authtoken': site.authtoken('placement'),
        'oslo_concurrency': site.lock('placement')}, 'placement')
    site.write_uwsgi('placement', 'placement',
                     'placement.wsgi.api:application')
