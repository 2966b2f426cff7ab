# SPDX-License-Identifier: Apache-2.0
"""The service's configuration options."""

import copy
import os

from clickos_client import limits
from clickos_client import timing
from keystoneauth1 import loading as ks_loading
from oslo_config import cfg
from oslo_db import options as db_options
from oslo_log import log as logging


PROJECT = 'clickos-api'
FILES_VARIABLE = 'OS_CLICKOS_CONFIG_FILES'

API_OPTS = [
    cfg.IntOpt('guest_timeout', default=timing.GUEST_S, min=1, max=600,
               help="""
Seconds that a guest may take for an answer. The service waits 10 s longer for
the agent of the guest's host, which waits 5 s longer for cosmosd.
"""),
    cfg.StrOpt('agent_transport_url', secret=True, help="""
Where the agent of a compute host listens, as ``transport_url``. ``{host}``
stands for the host's name in Nova, for example
``rabbit://clickos:PASSWORD@queue:5671/clickos-{host}``.

With a virtual host of the message queue for each compute host, no host can
call or read the agent of another one. Unset, all agents listen on ``[DEFAULT]
transport_url``, and each compute host is trusted with all of them.
"""),
    cfg.FloatOpt('change_wait_timeout', default=2, min=0, max=600,
                 deprecated_name='verdict_wait', help="""
Seconds until the service answers 202 to a write without a verdict. The guest's
verdict then stands at the address in the header Location. Another write to the
same server waits as long for its turn.
"""),
    cfg.IntOpt('max_waiting_http_threads', default=32, min=1, max=1024,
               deprecated_name='waiting_threads', help="""
Threads of HTTP that may wait for guests at a time, or for their turn. A write
beyond that gets 202 immediately, a read 503. Keep it below the WSGI server's
threads by 8 at least: 4 more wait for slow guests, at most 3 of one project.
One project leaves 4 to others; of these a project leaves as many as it has.
Writes leave half of them to reads, and those of one project a quarter of the
rest to others.
"""),
    cfg.FloatOpt('read_queue', default=5, min=0, max=60, help="""
Seconds that a read waits for its turn at most; then it gets 503. A guest
answers a few reads at a time. A guest that answers slowly has no queue.
"""),
    cfg.IntOpt('server_cache_ttl', default=30, min=0, max=3600,
               deprecated_name='ownership_ttl', help="""
Seconds for which the service remembers owner and host of a server. It asks
Nova again if the guest is not found on the host, started again, or is silent.
"""),
    cfg.ListOpt('secret_key_files', default=[], help="""
Files with a key each, as Python's ``cryptography.fernet.Fernet`` makes them.
The first one encrypts secrets of tenants, all of them decrypt. To replace a
key, put a new one first, run ``clickos-db-manage rotate-secrets``, and remove
the old one. Empty: no secrets.
"""),
    cfg.StrOpt('catalog_path', help="""
Folder of packages (``*.csar``) that users may deploy by name, with
``openstack clickos vnf deploy``. A file that is added appears immediately.
Unset: no catalog.
"""),
    cfg.IntOpt('max_secrets', default=1000, min=0, help="""
Secrets that a project may have.
"""),
    cfg.IntOpt('pending_change_poll_interval', default=5, min=0, max=3600,
               deprecated_name='settle_interval', help="""
Seconds between two polls of the agents about changes without a verdict. 0:
never.
"""),
    cfg.IntOpt('prune_interval', default=300, min=0, max=86400, help="""
Seconds between two searches for states whose server Nova no longer has, which
the service deletes. 0: never.
"""),
    cfg.IntOpt('max_project_bytes', default=64 * 1024 * 1024, min=1, help="""
Quota: the bytes of configurations and handler values of a project. A state
that user_data may refer to counts its first texts, too, and 1,024 bytes more.
Changes without a verdict, and the texts of earlier revisions, may have as many
bytes together. Earlier revisions have half of these; beyond it a state keeps
fewer of them.
"""),
    cfg.IntOpt('requests_per_minute', default=6000, min=0, help="""
Requests of a project in a minute, for each process of the service; more get
429. 0: no limit.
"""),
    cfg.IntOpt('writes_per_minute', default=1200, min=0, help="""
Of these, requests that change something. 0: no limit.
"""),
    cfg.HostAddressOpt('metrics_host', default='127.0.0.1', help="""
Address at which the service answers on metrics_port.
"""),
    cfg.PortOpt('metrics_port', help="""
Port on which the service answers Prometheus at /metrics, without a token. If
the WSGI server has several processes, the first one answers. Unset: none.
"""),
    cfg.IntOpt('max_value_bytes', default=limits.VALUES_BYTES, min=1,
               max=limits.VALUES_BYTES, help="""
The longest value of one handler, in bytes of UTF-8.
"""),
    cfg.IntOpt('max_writes', default=limits.WRITES, min=1,
               max=limits.WRITES, help="""
Most handlers that one request may write.
"""),
    cfg.FloatOpt('share_interval', default=1, min=0, max=3600, help="""
Seconds between two rounds in which the service divides limits that guests
share. 0: never, so that guests keep the shares they have.
"""),
    cfg.IntOpt('max_handlers', default=limits.WRITES, min=1,
               max=limits.WRITES, help="""
Most handlers that the desired state of a server may name.
"""),
    cfg.IntOpt('max_state_bytes', default=limits.VALUES_BYTES, min=1,
               max=limits.VALUES_BYTES, help="""
The size of a server's desired state: the sum over its handlers of name and
value, in bytes of UTF-8.
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
