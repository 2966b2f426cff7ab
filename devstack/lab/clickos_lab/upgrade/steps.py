# SPDX-License-Identifier: Apache-2.0
"""The steps of docs/operator/production.md, in either order."""

import functools

from clickos_client import release

from clickos_lab import accounts
from clickos_lab import bounds
from clickos_lab.cloud import image
from clickos_lab.cloud import sessions
from clickos_lab.config import hosts
from clickos_lab import settings as _settings
from clickos_lab import shell
from clickos_lab.upgrade import place

#: Restarted together, in the guide's order.
_CONTROLLERS = (
    ('clickos-api',), ('neutron-rpc-server', 'neutron'),
    ('nova-conductor', 'nova-scheduler', 'nova'),
    ('tacker-server', 'tacker-conductor'))
#: Programs that check a file of their configuration.
_CHECKED = ('cosmosd', 'valed')


class Steps:
    """Upgrades of parts of a lab, each followed by checks.

    :param lab: a :class:`place.Lab` that is up
    :param probe: a :class:`probe.Probe` that was started
    """

    def __init__(self, lab, probe):
        self._lab, self._probe = lab, probe
        self._settings = _settings.Settings.load(lab.state)
        #: whether the other part is of this release
        self._is_whole = False

    def controllers(self):
        """Upgrade the controllers."""
        step = self._probe.step
        step('install the wheel on the controllers', functools.partial(
            self._lab.install_newer, place.CONTROLLERS))
        self._lab.configure_controllers()
        step('clickos-db-manage upgrade --expand',
             functools.partial(self._manage, 'upgrade', '--expand'))
        self._expect_status('after --expand', self._is_whole
                            or self._neighbors())
        for names in _CONTROLLERS:
            step(f'restart {", ".join(names)}',
                 functools.partial(self._lab.renew, *names))
        step('clickos-db-manage upgrade',
             functools.partial(self._manage, 'upgrade'))
        self._expect_status('after the controllers', self._is_whole
                            or self._neighbors())
        self._is_whole = True

    def host(self):
        """Upgrade the host, the switch last."""
        step = self._probe.step
        step('packages: cosmosd, clickos-agent, engine and image',
             self._packages)
        self._probe.expect_agent(release.version())
        step('restart nova-compute',
             functools.partial(self._lab.renew, 'nova-compute'))
        step('restart valed', functools.partial(self._lab.renew, 'valed'),
             bounds.read()['max_switch_restart_silent_seconds'])
        if self._is_whole:
            self._expect_status('after the host', True)
        self._is_whole = True

    def _neighbors(self):
        """Return whether this release may work with the older one."""
        return release.are_neighbors(self._lab.older.version,
                                     release.version())

    def _expect_status(self, text, is_good):
        if is_good:
            self._probe.expect_status(text, 'success')
        else:
            self._probe.expect_status(text, 'failure', 'Releases of agents')

    def _packages(self):
        """Do what apt-get does, and upload the image of the engine."""
        state = self._lab.state
        state.install(self._lab.parent.target / 'release')
        self._lab.install_newer(place.HOST)
        self._lab.configure_host()
        for name in _CHECKED:
            shell.output([state.binary(name), '--config',
                          state.etc / f'{name}.toml', '--check-config'])
        self._lab.renew('cosmosd', 'clickos-agent')
        image.ensure(state, sessions.admin(self._settings), hosts.PROCESS)

    def _manage(self, *arguments):
        """Run clickos-db-manage of this release."""
        state = self._lab.state
        home = str(accounts.home(state, 'clickos'))
        shell.run([*accounts.prefix(state, self._settings, 'clickos'),
                   state.tool('clickos-db-manage'), '--config-file',
                   state.etc / 'clickos/clickos-api.conf', *arguments],
                  state.log / 'databases.log', quiet=True, cwd='/',
                  env=shell.environment(state, HOME=home, TMPDIR=home))
