# SPDX-License-Identifier: Apache-2.0
"""Asks Nova, with the credentials of Neutron's section ``[nova]``."""

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import uuidutils

LOG = logging.getLogger(__name__)

#: An update of a port waits for the answer inside its transaction.
_TIMEOUT_S = 2


def is_gone(server_id):
    """Tell whether Nova knows no such server; False if it does not say.

    :param server_id: as a port names it
    """
    if not uuidutils.is_uuid_like(server_id):
        return False
    try:
        return _client().get(f'/servers/{server_id}',
                             raise_exc=False).status_code == 404
    except (exceptions.ClientException, cfg.Error) as error:
        LOG.warning('Server %s: Nova does not say whether it exists: %s',
                    server_id, error)
        return False


def _client():
    auth = loading.load_auth_from_conf_options(cfg.CONF, 'nova')
    session = loading.load_session_from_conf_options(cfg.CONF, 'nova',
                                                     auth=auth)
    session.timeout = _TIMEOUT_S
    return adapter.Adapter(
        session, service_type='compute', region_name=cfg.CONF.nova.region_name,
        interface=cfg.CONF.nova.endpoint_type, connect_retries=0)
