# SPDX-License-Identifier: Apache-2.0
"""Options of the Tacker drivers, read from tacker.conf."""

from oslo_config import cfg
from oslo_config import types

GROUP = cfg.OptGroup('clickos', title='ClickOS infra and mgmt drivers')

OPTS = [
    cfg.IntOpt('boot_timeout', default=60, min=1, max=3600, help="""
Seconds to wait for a guest's server to become ACTIVE. If it is not ready in
time the operation fails and what it made is removed.
"""),
    cfg.IntOpt('delete_timeout', default=60, min=1, max=3600, help="""
Seconds to wait until Nova no longer knows a deleted server.
"""),
    cfg.IntOpt('request_timeout', default=30, min=1, max=600, help="""
Seconds to wait for one answer of Nova, Neutron, Glance or clickos-api.
"""),
    cfg.IntOpt('outage_timeout', default=30, min=0, max=3600, help="""
Seconds for which an operation repeats its steps while Nova, Neutron, Glance,
Keystone, clickos-api or the database is unavailable, and a step with a server
that Nova gave up. A request that no host can fulfill fails that much later.
0: nothing is repeated.
"""),
    cfg.IntOpt('watch_interval', default=10, min=0, max=3600, help="""
Seconds between two polls of the servers of all ClickOS VNFs, with one
request to Nova for each VIM. A change is stored in the VNF's metadata as
``clickos_state``.
0 switches the watcher off.
"""),
    cfg.FloatOpt('heal_interval', default=0.5, min=0.1, max=60, help="""
Seconds between two polls of Nova for changed servers of VNFs whose
descriptors have a policy ``clickos.policies.AutoHeal``. The watcher asks only
VIMs that have such VNFs. ``watch_interval`` = 0 switches it off, too.
"""),
    cfg.IntOpt('heal_unreachable_after', default=60, min=0, max=86400,
               help="""
Seconds after which an ``AutoHeal`` heals an ``UNREACHABLE`` guest, which
forwards but receives no change. cosmosd reconnects most of them within
seconds. 0 never heals them.
"""),
    cfg.StrOpt('check_program', default='click-check', help="""
Name or path of the program click-check. It finds the element groups that a
configuration needs, by which Tacker chooses the guest's image. Without it the
groups count that a package names. If it names none either, the guest gets the
image of the name in ``sw_image_data``.
"""),
    cfg.IntOpt('stale_operation_timeout', default=60, min=5, max=86400,
               deprecated_name='orphan_timeout', help="""
Seconds after which an operation counts as dead if no conductor holds the lock
of its VNF. The watcher removes the guests that a dead operation left, and
makes it FAILED_TEMP, so retry, rollback and fail work. Operations that wait
for a conductor get ten times as long. Conductors on several hosts need a
shared ``backend_url`` in ``[coordination]``.
"""),
    cfg.HostAddressOpt('metrics_host', default='127.0.0.1', help="""
Address at which the conductor answers on metrics_port.
"""),
    cfg.PortOpt('metrics_port', help="""
Port on which the conductor answers Prometheus at /metrics, without a token:
what the watcher tries again. Unset: none.
"""),
    cfg.BoolOpt('stock_driver', default=False, help="""
Let Tacker's own OpenStack driver have the VNFs of packages that use no type
of ClickOS. It needs Heat in the catalog of the VIM. Packages with scripts, and
requests that name one, are for users with the rule ``clickos:stock_scripts``
of Tacker's policy file, by default administrators: tacker-conductor runs such
scripts. Without the option these packages are refused; VNFs that the driver
has can be terminated.
"""),
    cfg.ListOpt('allowed_urls', default=[],
                item_type=types.URI(schemes=['http', 'https']), help="""
The only URLs of members that Tacker sends requests to. The list holds for
``auth_url`` of VIMs, ``callbackUri`` and token endpoints of subscriptions, and
every other URL in a request. An entry covers its scheme, host and port, and
its path with all paths below. Hosts are compared as text. A name in an entry
makes its DNS server trusted, and a host in an entry may redirect Tacker
anywhere. The default refuses every URL, so at least keystone's has to be
listed: ``http://keystone.example.org:5000/v3``.
"""),
]


def register(conf=cfg.CONF):
    """Register the options; may be called twice."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)
    return conf


def list_opts():
    """Return the options for oslo.config's sample generator."""
    return [(GROUP.name, OPTS)]
