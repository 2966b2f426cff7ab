# SPDX-License-Identifier: Apache-2.0
"""Our Tempest plugin against services that are started for it."""

import os
import shutil
import subprocess
import sys

from clickos_lab import apt
from clickos_lab.cloud import compute
from clickos_lab.cloud import sessions
from clickos_lab.config import hosts
from clickos_lab.config import site as _site
from clickos_lab.config import tempest as tempest_conf
from clickos_lab import dashboard
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab import say
from clickos_lab import settings as _settings
from clickos_lab import shell
from clickos_lab.suites import on_lab
from clickos_lab.vnf import csar

#: Tempest's word for tests that take long; soak runs them, too.
_QUICK = r'^(?!.*\[.*\bslow\b)clickos_tempest_plugin'


def main():
    """Start the services, run the tests, stop the services.

    Arguments replace the expression that selects our tests but the slow
    ones, and go to ``tempest run``.
    """
    state = paths.State()
    lab = _lab.Lab(state, (hosts.SECOND, hosts.XEN))
    return on_lab.run(lab, lambda: _all(state, sys.argv[1:]),
                      lambda: _prepare(state))


def _prepare(state):
    prepare.xen(state)
    apt.ensure(state, apt.NETWORK_PACKAGES)
    dashboard.provide_tools(state)


def _all(state, arguments):
    """Run the tests of the lab itself, then Tempest."""
    failed = 0
    if state.wants_tls:
        failed = _lab_tests(state, 'tests/tls')
    elif not arguments:
        failed = _lab_tests(state, 'tests/lab')
    return run(state, arguments or ['--regex', _QUICK]) or failed


def _lab_tests(state, tests):
    """Run a folder of tests of the running lab itself."""
    folder = paths.REPO / 'devstack/lab'
    env = {**shell.environment(state), 'PYTHONPATH': str(folder)}
    return subprocess.run(
        [sys.executable, '-m', 'unittest', 'discover', '-v', '-s',
         tests, '-t', '.'], cwd=folder, env=env,
        stdin=subprocess.DEVNULL).returncode


def run(state, arguments, configure=None):
    """Run ``tempest run`` with arguments on a lab that is up.

    :param configure: writes tempest.conf into a folder; by default that of
        our own tests
    :returns: its exit status
    """
    workspace, registry = state.data / 'tempest', state.data / 'tempest.yaml'
    shutil.rmtree(workspace, ignore_errors=True)
    registry.unlink(missing_ok=True)
    shell.run([state.tool('tempest'), 'init', '--workspace-path', registry,
               workspace], state.log / 'tempest-init.log',
              env=shell.environment(state))
    if configure:
        configure(workspace)
    else:
        _configure(state, workspace)
    say.say('tempest run')
    env = {**shell.environment(state), 'PYTHONUNBUFFERED': '1'}
    return subprocess.run(
        [state.tool('tempest'), 'run', '--concurrency', '1', *arguments],
        cwd=workspace, env=env, stdin=subprocess.DEVNULL).returncode


def _configure(state, workspace):
    configure(state, workspace, *hosts.PROCESSES)


def configure(state, workspace, first, second):
    """Write tempest.conf for our own tests.

    :param first: servers are made of the image of this host
    :param second: the host in a zone of its own
    """
    settings = _settings.Settings.load(state)
    admin = sessions.admin(settings)
    path = state.data / 'firewall.csar'
    csar.build('firewall', path)
    tempest_conf.write(
        _site.Site(state, settings), workspace, path,
        {'image': next(admin.image.images(name=first.image)).id,
         'flavor': admin.compute.find_flavor(compute.FLAVOR['name']).id,
         'second_zone': second.zone})


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main())
