# SPDX-License-Identifier: Apache-2.0
"""Horizon."""

from clickos_lab import rust

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
CLICKOS_CHECK_PROGRAM = {checker!r}
{trust}AVAILABLE_THEMES = [('default', 'Default', 'themes/default')]
"""
_TRUST = """\
OPENSTACK_SSL_CACERT = {authority!r}
CSRF_COOKIE_SECURE = True
SESSION_COOKIE_SECURE = True
"""


def path(state):
    """Return the file that Horizon reads as its local settings."""
    return state.etc / 'horizon/local_settings.py'


def write(site):
    """Write Horizon's settings and its uWSGI file."""
    trust = _TRUST.format(authority=str(site.state.authority))
    site.write('horizon/local_settings.py', _SETTINGS.format(
        trust=trust if site.settings.authority else '',
        secret=site.settings.passwords['horizon_secret'],
        keystone=site.settings.url('keystone', '/v3'),
        static=str(site.state.static),
        catalog=str(site.state.catalog),
        checker=str(site.state.binary(rust.CHECKER))), 'horizon')
    site.write_uwsgi('horizon', 'horizon', 'openstack_dashboard.wsgi'
                                           ':application')
