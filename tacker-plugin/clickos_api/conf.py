# SPDX-License-Identifier: Apache-2.0
"""The service's configuration options."""

import copy
import os

from clickos_client import limits
from keystoneauth1 import loading as ks_loading
from oslo_config import cfg
from oslo_db import options as db_options
from oslo_log import log as logging


PROJECT = 'clickos-api'
FILES_VARIABLE = 'OS_CLICKOS_CONFIG_FILES'

API_OPTS = [
    cfg.IntOpt('rpc_timeout', default=15, min=1, max=600, help="""
Seconds to wait for clickos-agent's answer. If no answer to a write comes in
this time, the service answers 504. It records the write with the next one that
the agent answers, if the agent applied it. The time must be longer than the
agent's own limit, or the agent's answers get lost.
Other writes to the same server wait as long for their turn.
"""),
    cfg.StrOpt('agent_transport_url', secret=True, help="""
Where the agent of a compute host listens, as ``transport_url``. ``{host}``
stands for the host's name in Nova, for example
``rabbit://clickos:PASSWORD@queue:5671/clickos-{host}``.

With a virtual host of the message queue for each compute host, no host can
call or read the agent of another one. Unset, all agents listen on ``[DEFAULT]
transport_url``, and each compute host is trusted with all of them.
"""),
    cfg.IntOpt('max_value_bytes', default=20480, min=1,
               max=limits.VALUES_BYTES, help="""
The longest value of one handler, in bytes of UTF-8.
"""),
    cfg.IntOpt('max_writes', default=128, min=1, max=limits.WRITES, help="""
Most handlers that one request may write, and most handlers of one server that
desired state may name.
"""),
    cfg.IntOpt('max_state_bytes', default=20480, min=1,
               max=limits.VALUES_BYTES, help="""
The size of a server's desired state: the sum over its handlers of name and
value, in bytes of UTF-8. Desired state travels in Nova's user_data when a VNF
is healed, together with the configuration, in 48 KB.
"""),
]

API_GROUP = cfg.OptGroup('clickos_api', title='The API service itself')
NOVA_GROUP = cfg.OptGroup('nova', title='Access to Nova', help="""
Credentials of a user with the admin role: Nova tells the host of a server
only to administrators. The service uses the caller's own token to ask Nova
if the caller may see a server.
""")
TACKER_GROUP = cfg.OptGroup('tacker', title='Address of Tacker', help="""
Where Tacker's API is. The service calls it with the caller's own token only.
""")
NEUTRON_GROUP = cfg.OptGroup('neutron', title='Address of Neutron', help="""
Where Neutron's API is. The service finds the host of a port chain there, with
the credentials of group nova.
""")


def _with_default(opts, **defaults):
    """Copy keystoneauth's options and give some of them a default."""
    opts = copy.deepcopy(opts)
    for opt in opts:
        if opt.dest in defaults:
            opt.default = defaults[opt.dest]
    return opts


def _nova_opts():
    return (_with_default(ks_loading.get_session_conf_options(), timeout=10)
            + ks_loading.get_auth_common_conf_options()
            + _with_default(ks_loading.get_adapter_conf_options(),
                            service_type='compute',
                            valid_interfaces=['internal', 'public']))


def _tacker_opts():
    return _with_default(ks_loading.get_adapter_conf_options(),
                         service_type='nfv-orchestration',
                         valid_interfaces=['internal', 'public'])


def _neutron_opts():
    return _with_default(ks_loading.get_adapter_conf_options(),
                         service_type='network',
                         valid_interfaces=['internal', 'public'])


def list_opts():
    """List the options for oslo.config's sample generator."""
    return [(API_GROUP, API_OPTS), (NOVA_GROUP, _nova_opts()),
            (TACKER_GROUP, _tacker_opts()), (NEUTRON_GROUP, _neutron_opts())]


def register(conf):
    """Register every option this service reads itself."""
    conf.register_group(API_GROUP)
    conf.register_opts(API_OPTS, group=API_GROUP)
    conf.register_group(NOVA_GROUP)
    conf.register_opts(_nova_opts(), group=NOVA_GROUP)
    conf.register_group(TACKER_GROUP)
    conf.register_opts(_tacker_opts(), group=TACKER_GROUP)
    conf.register_group(NEUTRON_GROUP)
    conf.register_opts(_neutron_opts(), group=NEUTRON_GROUP)
    db_options.set_defaults(conf)
    logging.register_options(conf)
    return conf


def files_from_environment():
    """Name the configuration files a WSGI server passes on, or None."""
    return [f for f in os.environ.get(FILES_VARIABLE, '').split(';')
            if f] or None


def parse(conf, args, files=None):
    """Read the configuration and set up logging.

    :param conf: options that are registered
    :param args: command line without the program's name
    :param files: configuration files if args names none; None for
        oslo.config's usual places
    """
    conf(args, project=PROJECT, default_config_files=files)
    logging.setup(conf, PROJECT)
    return conf


def load(args, files=None):
    """Register the options and read their values; see parse.

    In oslo.config's global object, since oslo.messaging's tracing looks for
    its own options there.
    """
    return parse(register(cfg.CONF), args, files)
