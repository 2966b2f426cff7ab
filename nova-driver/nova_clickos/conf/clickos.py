# SPDX-License-Identifier: Apache-2.0
"""Group ``[clickos]`` of nova.conf."""

from keystoneauth1 import loading as ks_loading
from oslo_config import cfg

GROUP = cfg.OptGroup('clickos', title='ClickOS guests', help="""
How nova-compute reaches cosmosd and clickos-api. The daemon cosmosd makes
ClickOS guests. The service clickos-api keeps the handler values that tenants
have set since a guest started.

The keystoneauth options of this group (``auth_type``, ``auth_url``,
``username``, ...) name the user that asks clickos-api; it needs the
``service`` role. Without them a server can be created, but not started again.
""")

_OPTS = [
    cfg.StrOpt('cosmosd_socket', default='/run/clickos/cosmosd.sock', help="""
Path of cosmosd's UNIX socket on this host.

The user nova-compute runs as must have the ``nova`` role in cosmosd's
configuration.
"""),
    cfg.IntOpt('cosmosd_timeout', default=10, min=1, max=600, help="""
Seconds to wait for an answer of cosmosd.

Related options: ``[clickos] create_timeout`` comes on top when a guest is
created.
"""),
    cfg.IntOpt('cosmosd_patience', default=20, min=0, max=600, help="""
Seconds that operations on guests wait for an unavailable cosmosd, as during
its restart. All calls of one outage wait for this time together.
"""),
    cfg.IntOpt('create_timeout', default=10, min=1, max=600, help="""
Seconds a new guest may take until it runs its configuration and has applied
its first handler writes. Without a ready guest in this time, the driver
destroys the guest and the start fails.
"""),
    cfg.IntOpt('resume_timeout', default=600, min=0, max=86400, help="""
Seconds after the boot of a host in which the driver repeats starts of guests.

It repeats a start while clickos-api, Glance or a daemon of the host does not
answer.

All guests share this time, and nova-compute serves no requests in it. If
clickos-api answers but has no key for a guest's secrets, that guest waits for
30 s at most. All such guests together wait for half of the time. A guest
that does not start for another reason, or in this time, makes its server
ERROR; a hard reboot starts it. 0 means one try for each guest.

Related options: ``[DEFAULT] resume_guests_state_on_host_boot``
"""),
    cfg.BoolOpt('allow_process_host', default=False, help="""
Accept a cosmosd whose guests are confined processes instead of Xen domains.

Such guests share the host's kernel, so their isolation is weaker: meant for
development and tests. The hypervisor type is then ``clickos-process``.
Without this option nova-compute refuses to start on such a host.
"""),
    cfg.IntOpt('ring_slots', default=512,
               choices=[64, 128, 256, 512, 1024, 2048], help="""
Slots of each ring between a guest's interface and the switch.

More slots take longer bursts without loss; a slot costs 2 KiB in each of the
two directions, for each interface.
"""),
    cfg.StrOpt('migration_address', help="""
Address of this host at which guests arrive from other hosts.

Unset, it is ``[DEFAULT] my_ip``. A live migration listens here for one
connection, which is encrypted and shows a secret that Nova carried.

Related options: ``[clickos] migration_ports``
"""),
    cfg.StrOpt('migration_ports', default='49152-49215',
               regex='^[0-9]{1,5}-[0-9]{1,5}$', help="""
TCP ports, the first and the last, at which guests arrive.

Each live migration to this host takes one. A firewall has to let the other
hosts reach them.
"""),
    cfg.IntOpt('max_image_mib', default=64, min=1, max=4096, help="""
Largest image in MiB that the driver reads from Glance to compute its SHA-256,
unless ``os_hash_algo`` is ``sha256``, or to copy it for a snapshot.

A process host never runs an image: the image must equal the installed engine,
byte for byte. On a Xen host ``max_image_mib`` of cosmosd bounds images, too.
"""),
]


def _adapter_opts():
    opts = ks_loading.get_adapter_conf_options(include_deprecated=False)
    cfg.set_defaults(opts, service_type='clickos',
                     valid_interfaces=['internal', 'public'])
    return opts


def _session_opts():
    opts = ks_loading.get_session_conf_options()
    # Without a limit a silent clickos-api would block a start for ever.
    cfg.set_defaults(opts, timeout=10)
    return opts


def register_opts(conf):
    """Register the group and all its options; may be called twice."""
    conf.register_group(GROUP)
    conf.register_opts(_OPTS + _session_opts() + _adapter_opts(), group=GROUP)
    ks_loading.register_auth_conf_options(conf, GROUP.name)


def all_opts():
    """:returns: the options for a sample file, with those of keystoneauth"""
    return (_OPTS + _session_opts() + _adapter_opts()
            + ks_loading.get_auth_common_conf_options()
            + ks_loading.get_auth_plugin_conf_options('password'))
