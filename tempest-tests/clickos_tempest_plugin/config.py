# SPDX-License-Identifier: Apache-2.0
"""The plugin's part of tempest.conf."""

import os
import sys

from oslo_config import cfg

service_available = cfg.BoolOpt('clickos', default=True, help="""
The cloud has clickos-api, and Tacker with the ClickOS drivers.
""")

clickos_group = cfg.OptGroup('clickos', title='ClickOS')
tacker_group = cfg.OptGroup('nfv_orchestration', title='Tacker')


def _service(catalog_type):
    return [
        cfg.StrOpt('catalog_type', default=catalog_type,
                   help='Type of the service in the catalog.'),
        cfg.StrOpt('region', default='',
                   help='Region of the endpoint; empty for identity.region.'),
        cfg.StrOpt('endpoint_type', default='public',
                   choices=['public', 'internal', 'admin'],
                   help='Kind of endpoint that the tests use.'),
    ]


clickos_opts = _service('clickos') + [
    cfg.StrOpt('csar_path', help="""
The firewall's CSAR, as vnfd-templates/build_csar.py makes it. Tests with bad
packages change copies of it.
"""),
    cfg.StrOpt('nat_csar_path', help="""
The NAT's CSAR. The test of a NAT that scales is skipped without it.
"""),
    cfg.StrOpt('catalog_path', help="""
Folder with the CSARs router.csar, shaper.csar and ips.csar of the catalog.
Tests of these VNFs are skipped without it.
"""),
    cfg.StrOpt('image', default='clickos', help="""
Name of the operator's image in Glance, the one the firewall's VNFD names.
"""),
    cfg.StrOpt('flavor', default='clickos.tiny', help="""
Name of the flavor of a guest that is started without Tacker.
"""),
    cfg.StrOpt('host_command', help="""
Command on the compute host whose verbs attach network namespaces to the
switch and kill guests and daemons. The lab's is ``python -m clickos_lab
host``, whose --help describes them. Tests that need the host are skipped
without it.
"""),
    cfg.StrOpt('xen_image', default='clickos-xen', help="""
Name of the operator's image for Xen hosts, which a VNFD may name instead of
``image``.
"""),
    cfg.StrOpt('linux_image', help="""
Name of an image of disk_format ``aki`` for Xen hosts: a Linux kernel whose RAM
disk gives eth0 the address of the server's first port, writes a line with the
MAC address of each device to the console, and answers pings. Tests of Linux
guests are skipped without it.
"""),
    cfg.StrOpt('xen_host_command', help="""
The same command as ``host_command`` for a Xen host of the cloud; machines are
attached with ``host_command`` in any case. Tests of guests on Xen are skipped
without it.
"""),
    cfg.StrOpt('second_zone', help="""
Availability zone of another ClickOS process host than that of servers without
a zone. Tests of networks between hosts are skipped without it.
"""),
    cfg.StrOpt('second_host_command', help="""
The same command as ``host_command`` for the host of ``second_zone``. Tests of
servers that move between hosts are skipped without it.
"""),
    cfg.StrOpt('second_xen_zone', help="""
Availability zone of another Xen host than that of ``xen_host_command``. Tests
of Xen guests that move between hosts are skipped without it.
"""),
    cfg.StrOpt('second_xen_host_command', help="""
The same command as ``host_command`` for the host of ``second_xen_zone``.
"""),
    cfg.StrOpt('bounds_path', default=os.path.join(
        sys.prefix, 'share/clickos/bounds.toml'), help="""
The file of the bounds that docs/promises.md promises, docs/bounds.toml. The
installed package has a copy.
""", sample_default='/usr/share/clickos/bounds.toml'),
    cfg.StrOpt('faults_path', help="""
File to which each operation during an outage adds a line, a JSON object.
"""),
    cfg.StrOpt('combine_program', default='click-combine', help="""
The program click-combine, which fuses chains.
"""),
    cfg.BoolOpt('heat', default=False, help="""
The cloud has Heat, ``[clickos] stock_driver`` is on, and a host that is not
ClickOS' has room for a server of 64 GiB. Tests of VNFs of Tacker's stock
driver are skipped without it.
"""),
    cfg.IntOpt('lcm_timeout', default=90, min=1, help="""
Seconds to wait for a life cycle operation of Tacker, or for a package.
"""),
    cfg.IntOpt('state_timeout', default=60, min=1, help="""
Seconds until a change on the host must be visible in Nova and Tacker.
"""),
    cfg.FloatOpt('poll_interval', default=0.2, min=0.05, help="""
Seconds between two looks.
"""),
]

tacker_opts = _service('nfv-orchestration')


def list_opts():
    """List the options for oslo.config's sample generator."""
    return [(clickos_group.name, clickos_opts),
            (tacker_group.name, tacker_opts),
            ('service_available', [service_available])]
