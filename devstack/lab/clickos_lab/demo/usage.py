# SPDX-License-Identifier: Apache-2.0
"""The text that a kept demonstration ends with: how to use it.

Each indented line runs as it is printed; the suite ``documents`` does so.
"""

import shlex

from clickos_lab.config import hosts
from clickos_lab.host import target
from clickos_lab import paths
from clickos_lab.xen import compute
from clickos_lab.xen import toolstack

_TEXT = '\n'.join((
    'Everything is still running. As the tenant:',
    '  . {root}/openrc-demo',
    '  openstack clickos vnf list',
    '  openstack clickos vnf show {vnf}',
    '  openstack clickos handler list --vnf {vnf}',
    '  openstack clickos handler read --vnf {vnf} passed.count',
    "  openstack clickos handler write --vnf {vnf} fw.config 'allow all'",
    "From the client's namespace, through the VNF to the server:",
    '  ip netns exec {client} ping -c 3 {server_ip}',
    '  ip netns exec {client} curl -sI http://{server_ip}/',
    'On the host:',
    '{host}',
    'As the tenant, the rules of the demonstration again, which deny HTTP:',
    '  openstack clickos vnf set {vnf} --wait --property'
    " rules='deny tcp dst port 80, allow icmp, allow tcp, deny all'",
    'make lab-down stops everything; make clean-demo removes it too.',
    ''))
_ON_PROCESS_HOST = """\
  {release}/cosmos --socket {run}/cosmosd/cosmosd.sock list
  {release}/vale-ctl --socket {run}/valed/valed.sock ports"""
_ON_XEN_HOST = """\
  export CLICKOS_STATE={root} PYTHONPATH={repo}/devstack/lab
  python3 -m clickos_lab xen run --host {name} 'xl list'
  python3 -m clickos_lab xen run --host {name} {cosmos}
  python3 -m clickos_lab xen run --host {name} {vale_ctl}
  python3 -m clickos_lab xen shell --host {name}"""


def text(state, host, vnf_id, client, server_ip):
    """Return what to type while the demonstration is up.

    :param host: of the VNF, one of :data:`target.NAMES`
    :param client: the name of the client's namespace
    """
    return _TEXT.format(
        root=state.root, vnf=vnf_id, client=client, server_ip=server_ip,
        host=_on_xen_host(state) if host == target.XEN
        else _ON_PROCESS_HOST.format(release=state.target / 'release',
                                     run=state.run))


def _on_xen_host(state):
    return _ON_XEN_HOST.format(
        root=state.root, repo=paths.REPO, name=compute.name(hosts.XEN),
        cosmos=shlex.quote(toolstack.command('cosmos', 'list')),
        vale_ctl=shlex.quote(toolstack.command('vale-ctl', 'ports')))
