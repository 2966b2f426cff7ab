# SPDX-License-Identifier: Apache-2.0
"""The command openstack, as a member of the project types it."""

import os
import shlex
import subprocess
import sys

from oslo_log import log as logging
from tempest import config

CONF = config.CONF
LOG = logging.getLogger(__name__)
_TIMEOUT_S = 300


def openstack(clients, *arguments):
    """Run the command of this installation; return the ended process.

    :param clients: Tempest's client manager of the member
    """
    user = clients.credentials
    program = os.path.join(os.path.dirname(sys.executable), 'openstack')
    done = subprocess.run(
        [program, *arguments], stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=_TIMEOUT_S,
        env={**os.environ, 'OS_AUTH_URL': CONF.identity.uri_v3,
             'OS_IDENTITY_API_VERSION': '3',
             'OS_REGION_NAME': CONF.identity.region,
             'OS_CACERT': CONF.identity.ca_certificates_file or '',
             'OS_USERNAME': user.username, 'OS_PASSWORD': user.password,
             'OS_PROJECT_NAME': user.project_name,
             'OS_USER_DOMAIN_NAME': user.user_domain_name,
             'OS_PROJECT_DOMAIN_NAME': user.project_domain_name})
    LOG.info('openstack %s: exit status %d', shlex.join(arguments),
             done.returncode)
    return done
