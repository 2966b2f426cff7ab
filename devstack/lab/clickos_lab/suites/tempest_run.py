# SPDX-License-Identifier: Apache-2.0
"""``tempest run`` on a lab that is up."""

import os
import re
import shutil

from clickos_lab.cloud import compute
from clickos_lab.cloud import sessions
from clickos_lab.config import hosts
from clickos_lab.config import site as _site
from clickos_lab.config import tempest as tempest_conf
from clickos_lab import log
from clickos_lab import paths
from clickos_lab import processes
from clickos_lab import settings as _settings
from clickos_lab import shell
from clickos_lab.suites import stestr_tests
from clickos_lab.vnf import csar
from clickos_lab.vnf import programs
from clickos_lab.xen import linux_image

WORKERS = 2
#: for each test; the set-up of a class has more
_LIMIT_S = 600
_PASSED = re.compile(r'^ - Passed: (\d+)$')


def run(state, arguments, configure=None, workers=WORKERS):
    """Run ``tempest run`` with arguments on a lab that is up.

    :param configure: writes tempest.conf into a folder; by default that of
        our own tests
    :param workers: 1 for tests that run one after the other anyway: the
        other worker would wait for their lock longer than a test may take
    :returns: 0 when all tests passed, if need be alone
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
    log.info('tempest run')
    command = [state.tool('tempest'), 'run', '--concurrency']
    where = {'cwd': workspace, 'env': limited(state, _LIMIT_S)}
    return stestr_tests.follow(
        [*command, str(workers), *arguments],
        lambda name: passes([*command, '1', '--regex', of(name)], where),
        **where)


def require_known(arguments):
    """Refuse arguments that ``tempest run`` does not know.

    To be called before a lab starts: the program would say so minutes later.
    :raises SystemExit: with the status 2, after a message
    """
    from tempest.cmd import run as command   # needs the virtual environment
    command.TempestRun(None, None).get_parser('tempest run').parse_args(
        arguments)


def of(name):
    """Return an expression for a test, or for those of a class.

    Tempest's lines have the name without the attributes in brackets that
    follow it in the list of tests.
    """
    return '^' + re.escape(name) + r'(\[|\.|$)'


def passes(command, where):
    """Run tests alone; they pass only if one ran: no match is no success."""
    with stestr_tests.ended_with_us(command, **where) as process:
        passed = 0
        for line in process.stdout:
            print(line, end='', flush=True)
            if found := _PASSED.match(line):
                passed = int(found[1])
    return process.returncode == 0 and passed > 0


def limited(state, seconds, *folders):
    """Return an environment in which each Python test has a time limit.

    :param folders: of modules that the tests import
    """
    # The log file has the requests; a failure shows its reason only.
    return shell.environment(
        state, PYTHONUNBUFFERED='1', OS_LOG_CAPTURE='0',
        TEST_LIMIT_S=str(seconds),
        PYTHONPATH=os.pathsep.join(map(str, (
            paths.REPO / 'devstack/lab/limits', *folders))))


def _configure(state, workspace):
    configure(state, workspace, *hosts.PROCESSES)


def configure(state, workspace, first, second):
    """Write tempest.conf for our own tests.

    :param first: servers are made of the image of this host
    :param second: the host in a zone of its own, if the lab has it
    """
    settings = _settings.Settings.load(state)
    admin = sessions.admin(settings)
    for name in ('firewall', 'nat', 'shaper', 'ips', 'router'):
        csar.build(name, state.data / f'{name}.csar')
    tempest_conf.write(
        _site.Site(state, settings), workspace, state.data,
        {'image': next(admin.image.images(name=first.image)).id,
         'flavor': admin.compute.find_flavor(compute.FLAVOR['name']).id,
         'combine_program': programs.path('click-combine'),
         'second_zone': second.zone if is_up(state, second) else None,
         'has_xen': is_up(state, hosts.XEN),
         'linux_image': _linux_image(admin),
         'has_heat': 'heat-engine' in processes.Processes(state).names(),
         'second_xen_zone': hosts.SECOND_XEN.zone
         if is_up(state, hosts.SECOND_XEN) else None})


def _linux_image(admin):
    """Return the name of the image of a Linux guest, None without one."""
    name = hosts.XEN.image + linux_image.KERNEL
    return name if any(admin.image.images(name=name)) else None


def is_up(state, host):
    """Return whether a lab that is up has a compute host."""
    return f'nova-compute{host.suffix}' in processes.Processes(state).names()
