# SPDX-License-Identifier: Apache-2.0
"""``tempest run`` on a lab that is up."""

import shutil
import subprocess

from clickos_lab.cloud import compute
from clickos_lab.cloud import sessions
from clickos_lab.config import hosts
from clickos_lab.config import site as _site
from clickos_lab.config import tempest as tempest_conf
from clickos_lab import say
from clickos_lab import settings as _settings
from clickos_lab import shell
from clickos_lab.vnf import csar
from clickos_lab.vnf import programs


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
    for name in ('firewall', 'nat'):
        csar.build(name, state.data / f'{name}.csar')
    tempest_conf.write(
        _site.Site(state, settings), workspace, state.data,
        {'image': next(admin.image.images(name=first.image)).id,
         'flavor': admin.compute.find_flavor(compute.FLAVOR['name']).id,
         'second_zone': second.zone,
         'combine_program': programs.path('click-combine')})
