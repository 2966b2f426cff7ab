# SPDX-License-Identifier: Apache-2.0
"""Our own daemons: valed and cosmosd."""

_COSMOSD = """\
socket = "{run}/cosmosd/cosmosd.sock"
state_dir = "{data}"
valed_socket = "{run}/valed/valed.sock"
xenstore_dir = "{run}/xenstored"
host_kind = "process"
memory_mib = 2048
max_guests = 256
[process]
engine = "{engine}"
first_uid = {guest_uid}
cgroup = "{cgroup}"
[roles]
nova = [{nova_uid}]
agent = [{agent_uid}]
operator = []
"""

_VALED = """\
socket = "{run}/valed/valed.sock"
[roles]
toolstack = []
operator = []
"""


def guests_group(settings):
    """The control group above those of this lab's guests."""
    return f'clickos-guests-{settings.guest_uid}'


def switch_group(settings):
    """The control group of the switch and the toolstack."""
    return f'clickos-switch-{settings.guest_uid}'


def write(site):
    """Write cosmosd.toml and valed.toml."""
    state, settings = site.state, site.settings
    data = state.data / 'cosmosd'
    data.mkdir(exist_ok=True, mode=0o700)
    values = {'run': state.run, 'data': data,
              'engine': state.binary('clickos-process'),
              'guest_uid': settings.guest_uid,
              'cgroup': guests_group(settings),
              'nova_uid': settings.nova_uid,
              'agent_uid': settings.agent_uid}
    site.write('cosmosd.toml', _COSMOSD.format(**values))
    site.write('valed.toml', _VALED.format(**values), 'valed')
