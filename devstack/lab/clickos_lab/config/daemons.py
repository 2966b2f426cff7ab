# SPDX-License-Identifier: Apache-2.0
"""Our own daemons: valed and cosmosd."""

from clickos_lab.config import options


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
    values = {
        'CLICKOS_COSMOSD_SOCKET': state.run / 'cosmosd/cosmosd.sock',
        'CLICKOS_VALED_SOCKET': state.run / 'valed/valed.sock',
        'CLICKOS_VALED_STORE': '',
        'CLICKOS_XENSTORE_DIR': state.run / 'xenstored',
        'CLICKOS_COSMOSD_DIR': data, 'CLICKOS_HOST_KIND': 'process',
        'CLICKOS_ENGINE': state.binary('clickos-process'),
        'CLICKOS_GUEST_UID': settings.guest_uid,
        'CLICKOS_CGROUP': guests_group(settings),
        'CLICKOS_NOVA_UID': settings.nova_uid,
        'CLICKOS_AGENT_UID': settings.agent_uid}
    site.write('cosmosd.toml', options.file('cosmosd.toml', **values))
    site.write('valed.toml', options.file('valed.toml', **values), 'valed')
