# SPDX-License-Identifier: Apache-2.0
"""Horizon."""

_SETTINGS = """\
DEBUG = False
ALLOWED_HOSTS = ['127.0.0.1', 'localhost']
SECRET_KEY = {secret!r}
OPENSTACK_KEYSTONE_URL = {keystone!r}
OPENSTACK_KEYSTONE_DEFAULT_ROLE = 'member'
# One process serves all sessions, and a restart ends them.
SESSION_ENGINE = 'django.contrib.sessions.backends.cache'
CACHES = {{'default': {{
    'BACKEND': 'django.core.cache.backends.locmem.LocMemCache'}}}}
STATIC_ROOT = {static!r}
COMPRESS_OFFLINE = True
CLICKOS_CATALOG = {catalog!r}
AVAILABLE_THEMES = [('default', 'Default', 'themes/default')]
"""


def path(state):
    """Return the file that Horizon reads as its local settings."""
    return state.etc / 'horizon/local_settings.py'


def write(site):
    """Write Horizon's settings and its uWSGI file."""
    site.write('horizon/local_settings.py', _SETTINGS.format(
        secret=site.settings.passwords['horizon_secret'],
        keystone=site.settings.url('keystone', '/v3'),
        static=str(site.state.static),
        catalog=str(site.state.catalog)), 'horizon')
    site.write_uwsgi('horizon', 'horizon', 'openstack_dashboard.wsgi'
                                           ':application')
