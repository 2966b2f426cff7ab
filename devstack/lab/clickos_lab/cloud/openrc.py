# SPDX-License-Identifier: Apache-2.0
"""Files to source before calling ``openstack``, mode 0600."""

import os

from clickos_lab.config import site

_TEXT = """\
export OS_AUTH_URL={url} OS_IDENTITY_API_VERSION=3 OS_REGION_NAME={region}
export OS_USERNAME={name} OS_PROJECT_NAME={name}
export OS_USER_DOMAIN_ID=default OS_PROJECT_DOMAIN_ID=default
export OS_PASSWORD='{password}'
export COSMOSD_SOCKET={run}/cosmosd/cosmosd.sock
export VALED_SOCKET={run}/valed/valed.sock
{trust}export PATH="{bin}:{venv}/bin:$PATH" no_proxy='*' PYTHONWARNINGS=ignore
"""


def write(state, settings):
    """Write ``openrc-admin`` and ``openrc-demo`` in the state folder."""
    trust = settings.authority and \
        f'export OS_CACERT={settings.authority}\n'
    for name in ('admin', 'demo'):
        path = state.root / f'openrc-{name}'
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(fd, 'w') as f:
            f.write(_TEXT.format(
                url=settings.url('keystone', '/v3'), region=site.REGION,
                name=name, password=settings.passwords[name],
                trust=trust or '', venv=state.venv, bin=state.bin,
                run=state.run))
