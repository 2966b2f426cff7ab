# SPDX-License-Identifier: Apache-2.0
"""Horizon's own test settings with our plugin."""

import pathlib

from openstack_dashboard.test.settings import *  # noqa: F403,H303

from clickos_dashboard import enabled as _ours
from openstack_dashboard import enabled as _theirs
from openstack_dashboard.utils import settings as _utils

# Horizon takes all plugins in one call; Horizon's test settings made one.
_BASE = [app for app in INSTALLED_APPS  # noqa: F405
         if not app.startswith('openstack_dashboard.')]
HORIZON_CONFIG.pop('dashboards')  # noqa: F405
HORIZON_CONFIG.pop('default_dashboard')  # noqa: F405
INSTALLED_APPS[:] = _BASE  # noqa: F405
_utils.update_dashboards([_theirs, _ours], HORIZON_CONFIG,  # noqa: F405
                         INSTALLED_APPS)  # noqa: F405
_SNIPPET = (pathlib.Path(_ours.__file__).parents[1]
            / 'local_settings.d/_90_clickos.py')
exec(_SNIPPET.read_text())
# No page has a table, but Django's test cases begin a transaction.
DATABASES['default']['NAME'] = ':memory:'  # noqa: F405
POLICY_CHECK_FUNCTION = 'openstack_auth.policy.check'
# Pages name static files; no test makes them.
COMPRESS_ENABLED = False
COMPRESS_PRECOMPILERS = ()
