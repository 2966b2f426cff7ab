# SPDX-License-Identifier: Apache-2.0
"""A lab whose parts are of two releases."""

import dataclasses
import os
import shutil
import signal
import time

from clickos_lab.config import clickos_api
from clickos_lab.config import daemons
from clickos_lab.config import hosts
from clickos_lab.config import neutron
from clickos_lab.config import nova
from clickos_lab.config import options
from clickos_lab.config import site as _site
from clickos_lab.config import tacker
from clickos_lab import databases
from clickos_lab import distribution
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import rust
from clickos_lab import services
from clickos_lab import settings as _settings
from clickos_lab import stamps
from clickos_lab.upgrade import older as _older

#: The parts with Python environments of their own.
PARTS = CONTROLLERS, HOST = 'controllers', 'host'
#: Seconds that a service has to end politely.
_GRACE_S = 8


class State(paths.State):
    """A folder below that of another lab, whose environment it shares.

    It has data and configurations of its own, and what it installs: the
    programs of the host, and our Python packages of either part.

    :ivar python: by part, the folder with its Python packages
    """

    def __init__(self, parent):
        super().__init__(parent.root / 'upgrade')
        self.parent = parent
        for name in ('uv', 'venv', 'static', 'catalog', 'noxen'):
            setattr(self, name, getattr(parent, name))
        self.visible = parent.root
        self.python = {part: self.root / 'python' / part for part in PARTS}
        self.variables = {'PYTHONPATH': str(self.python[CONTROLLERS])}

    def install_python(self, part, folder):
        """Replace packages while services use them."""
        shutil.rmtree(self.python[part], ignore_errors=True)
        shutil.copytree(folder, self.python[part])
        self.python[part].parent.chmod(0o755)

    def install(self, folder, names=_older.PROGRAMS):
        """Replace programs that may run, as packages do."""
        target = self.target / 'release'
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            fresh = target / f'{name}.new'
            shutil.copy2(folder / name, fresh)
            fresh.chmod(0o755)
            fresh.rename(target / name)


class Catalog(services.Catalog):
    """The services without Horizon, whose settings are in the environment.

    Those of the host have an environment of their own.
    """

    def controllers(self):
        return [s for s in super().controllers() if s.name != 'horizon']

    def compute(self):
        path = str(self._state.python[HOST])
        return [dataclasses.replace(s, env={**s.env, 'PYTHONPATH': path})
                for s in super().compute()]


class Lab(_lab.Lab):
    """A lab that starts with parts of an older release.

    :param parent: the state folder with programs of this release
    """

    def __init__(self, parent):
        super().__init__(State(parent))
        self.parent = parent
        self.older = _older.Older(self.state.root / 'older')
        self._newer = self.state.root / 'newer'
        #: tells that the databases are those of the older release
        self._stamp_of_data = self.state.data / 'release.stamp'

    def start_older(self):
        """Start all services with the parts of the older release."""
        if not stamps.fresh(self._stamp_of_data, self.older.version):
            shutil.rmtree(self.state.data, ignore_errors=True)
        self.state.create()
        self.parent.root.chmod(0o711)
        self.state.install(self.older.programs)
        self.state.install(self.parent.target / 'release', [rust.CHECKER])
        for part in PARTS:
            self.state.install_python(part, self.older.python)
        self.older.configure()
        self.up()
        self._stamp_of_data.write_text(self.older.version)

    def _catalog(self):
        return Catalog(self.state, _settings.Settings.load(self.state))

    def forget(self):
        """Let the next start use the databases again, but for ours."""
        databases.execute(self.state, 'drop database clickos;')
        (self.state.data / 'schemas.stamp').unlink()
        self._stamp_of_data.write_text(self.older.version)

    def ensure(self):
        """Build the parts of both releases."""
        self.state.create()
        self.older.ensure(self.parent)
        shutil.rmtree(self._newer, ignore_errors=True)
        self._newer.mkdir(parents=True)
        _older.install(self.parent, distribution.wheel(
            self.parent, self._newer), self._newer / 'python')

    def install_newer(self, part):
        """Install the wheel of this release for the controllers or the host.

        Configurations are as this release describes them from now on.
        """
        self.state.install_python(part, self._newer / 'python')
        options.use(options.FOLDER)

    def configure_controllers(self):
        """Write the configurations of the controllers, as now described."""
        self._stamp_of_data.unlink(missing_ok=True)
        site = self._site()
        for module in (neutron, nova, tacker, clickos_api):
            module.write(site)

    def configure_host(self):
        """Write the configurations of the host.

        Those of controllers in the same modules change, too: they read them
        at their next start.
        """
        site = self._site()
        for module in (daemons, nova, clickos_api):
            module.write(site)

    def _site(self):
        return _site.Site(self.state, _settings.Settings.load(self.state),
                          (hosts.PROCESS,))

    def start_controllers(self):
        """Start the controllers after they were stopped."""
        catalog = self._catalog()
        for group in ([catalog.keystone()], catalog.first(),
                      catalog.controllers()):
            self._start(group)

    def renew(self, *names):
        """End services as their units do, and start them again."""
        services = {s.name: s for s in self._catalog().all()}
        for name in names:
            self._end(name)
        self._start([services[name] for name in names])

    def _end(self, name):
        """End a service; the guests outlive cosmosd."""
        running = self.processes.find(name)
        os.kill(running.pid, signal.SIGTERM)
        end_s = time.monotonic() + _GRACE_S
        while running.alive() and time.monotonic() < end_s:
            time.sleep(0.05)
        self.processes.kill(name, workers=not name.startswith('cosmosd'))
