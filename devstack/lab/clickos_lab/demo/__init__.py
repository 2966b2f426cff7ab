# SPDX-License-Identifier: Apache-2.0
"""``make demo``: the main job on real services, from VNFD to packets."""

from clickos_lab.config import hosts
from clickos_lab import dashboard
from clickos_lab.demo import story
from clickos_lab.host import target
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import say
from clickos_lab.xen import compute
from clickos_lab.xen import toolstack


def run(state, host, keep, ui=False):
    """Bring the lab up, run the story, print the figures, clean up.

    :param host: of the VNF, one of :data:`target.NAMES`
    :param ui: do the main job in a browser, too
    :param keep: leave everything running, and say how to use it
    :returns: 0, or 1 if an expectation was not met
    """
    lab = _lab.Lab(state, [hosts.XEN] if host == target.XEN else [])
    lab.up()
    say.say(dashboard.invitation(state))
    tale = story.Story(state, target.of(host, state))
    done = False
    try:
        if ui:
            dashboard.show(state)
        tale.run(keep)
        done = True
    finally:
        if not (keep and done):
            _clean_up(tale, lab)
    tale.figures.print()
    if keep:
        _print_usage(state, host, tale)
    failed = tale.figures.failed
    say.say(f'{failed} expectations were NOT met' if failed
            else 'all expectations were met')
    return 1 if failed else 0


def _clean_up(tale, lab):
    try:
        tale.remove()
    finally:
        lab.down()


_USAGE = '\n'.join((
    'Everything is still running. As the tenant:',
    '  . {root}/openrc-demo',
    '  openstack vnflcm list',
    '  openstack clickos handler list --vnf {vnf}',
    '  openstack clickos handler read --vnf {vnf} passed.count',
    "  openstack clickos handler write --vnf {vnf} fw.config 'allow all'",
    '  openstack vnflcm update {vnf} --I {root}/data/demo-update.json',
    "From the client's and the server's namespaces:",
    '  ip netns exec {client} ping {server_ip}',
    '  ip netns exec {client} curl -sI http://{server_ip}/',
    'On the host:',
    '{host}',
    'make lab-down stops everything; make clean-demo removes it too.',
    ''))


_ON_PROCESS_HOST = """\
  {release}/cosmos --socket {run}/cosmosd/cosmosd.sock list
  {release}/vale-ctl --socket {run}/valed/valed.sock ports"""
_ON_XEN_HOST = """\
  CLICKOS_STATE={root} PYTHONPATH={repo}/devstack/lab \\
      python3 -m clickos_lab xen shell --host {name}
  in it: cd {folder}; xl list; xenstore-ls /local/domain
         ./cosmos --socket ./cosmosd.sock list
         ./vale-ctl --socket ./valed.sock ports"""


def _print_usage(state, host, tale):
    text = (_ON_XEN_HOST if host == target.XEN else _ON_PROCESS_HOST).format(
        root=state.root, run=state.run, release=state.target / 'release',
        repo=paths.REPO, name=compute.NAME, folder=toolstack.FOLDER)
    say.say(dashboard.invitation(state))
    print(_USAGE.format(
        root=state.root, vnf=tale.vnf_id, client=tale.client.name,
        server_ip=tale.server_port.ip, host=text))
