# SPDX-License-Identifier: Apache-2.0
"""Our own daemons: valed and cosmosd."""

from clickos_lab import accounts
from clickos_lab.config import options


def guests_group(settings, host):
    """The control group above those of a host's guests."""
    return f'clickos-guests-{settings.first_uid(host)}'


def switch_group(settings, host):
    """The control group of a host's switch and toolstack."""
    return f'clickos-switch-{settings.first_uid(host)}'


def write(site):
    """Write cosmosd.toml and valed.toml of each process host."""
    for host in site.compute_hosts:
        if host.place is not None:
            _write(site, host)


def _write(site, host):
    state, settings = site.state, site.settings
    cosmosd, valed = host.daemon('cosmosd'), host.daemon('valed')
    data = state.data / cosmosd
    data.mkdir(exist_ok=True, mode=0o700)
    kept = state.data / valed
    kept.mkdir(exist_ok=True, mode=0o700)
    captures = kept / 'captures'
    captures.mkdir(exist_ok=True, mode=0o700)
    for folder in (kept, captures):     # an older lab has the first one only
        accounts.own_tree(folder, settings.ids[valed])
    values = {
        'CLICKOS_COSMOSD_SOCKET': state.run / cosmosd / 'cosmosd.sock',
        'CLICKOS_VALED_SOCKET': state.run / valed / 'valed.sock',
        'CLICKOS_VALED_STORE': '',
        'CLICKOS_XENSTORE_DIR': state.run / host.daemon('xenstored'),
        'CLICKOS_COSMOSD_DIR': data, 'CLICKOS_VALED_DIR': kept,
        'CLICKOS_HOST_KIND': 'process',
        'CLICKOS_ENGINE': state.binary('clickos-process'),
        'CLICKOS_GUEST_UID': settings.first_uid(host),
        'CLICKOS_CGROUP': guests_group(settings, host),
        'CLICKOS_NOVA_UID': settings.role_uid('nova-compute', host),
        'CLICKOS_AGENT_UID': settings.role_uid('clickos-agent', host)}
    site.write(f'{cosmosd}.toml', options.file('cosmosd.toml', **values))
    site.write(f'{valed}.toml', options.file('valed.toml', **values), valed)
