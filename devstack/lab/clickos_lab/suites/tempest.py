# SPDX-License-Identifier: Apache-2.0
"""Tempest on a lab: our plugin, and the smoke tests of Nova and Neutron.

``python -m clickos_lab.suites.tempest`` starts a lab with three hosts and runs
:func:`everything` there; with ``--gate`` it starts one with a process host
only and runs :func:`quick`. Other arguments replace the expression that
selects our tests, and go to ``tempest run``.
"""

import json
import os
import subprocess
import sys

from clickos_lab import apt
from clickos_lab.config import hosts
from clickos_lab import dashboard
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab.suites import compute
from clickos_lab.suites import on_lab
from clickos_lab.suites import tempest_run
from clickos_lab.suites import touched

#: Tempest's word for tests that take long; soak runs them, too.
_QUICK = r'^(?!.*\[.*\bslow\b)clickos_tempest_plugin'
#: our word for the tests of ``make test``, which has no Xen host
_GATE = r'^(?!.*OnXenTest\.)clickos_tempest_plugin.*\[.*\bgate\b'
#: Classes of the first worker: the commands take as long as all other tests,
#: and no earlier run tells stestr so.
_FIRST = r'\.(EachCommandTest|AgentsTest)\.'
#: for each test of the lab itself
_LIMIT_S = 600


def quick(state):
    """Touch each API once, on a lab that is up, with one process host.

    :returns: the exit status
    """
    begun = {log: _size(log) for log in (
        state.log / f'{name}.log' for name in ('tempest', 'clickos-api'))}
    workers = state.data / 'tempest-workers.yaml'
    workers.write_text(json.dumps([
        {'worker': [_FIRST]}, {'worker': [f'^(?!.*{_FIRST})']}]))
    status = tempest_run.run(state, ['--regex', _GATE, '--worker-file',
                                     str(workers)])
    return status or touched.check(''.join(
        _text_since(log, at) for log, at in begun.items()))


def _size(log):
    return log.stat().st_size if log.exists() else 0


def _text_since(log, at):
    with open(log, 'rb') as f:
        f.seek(at)
        return f.read().decode(errors='replace')


def everything(state):
    """Run all quick tests on a lab that is up, with a second and a Xen host.

    :returns: the exit status
    """
    failed = [lab_tests(state), compute.smoke(state),
              tempest_run.run(state, ['--regex', _QUICK])]
    return int(any(failed))


def lab_tests(state, tests='tests/lab'):
    """Run a folder of tests of the running lab itself."""
    folder = paths.REPO / 'devstack/lab'
    return subprocess.run(
        [sys.executable, '-m', 'unittest', 'discover', '-v', '-s',
         tests, '-t', '.'], cwd=folder,
        env=tempest_run.limited(state, _LIMIT_S, folder),
        stdin=subprocess.DEVNULL).returncode


def prepare_everything(state):
    """Install and build what :func:`everything` needs besides the lab."""
    prepare.xen(state)
    apt.ensure(state, apt.NETWORK_PACKAGES)
    dashboard.provide_tools(state)


def main(arguments):
    """Start the services, run the tests, stop the services."""
    state = paths.State()
    if arguments == ['--gate']:
        return on_lab.run(_lab.Lab(state), lambda: quick(state))
    tempest_run.require_known(arguments)
    lab = _lab.Lab(state, (hosts.SECOND, hosts.XEN))
    return on_lab.run(lab, lambda: _work(state, arguments),
                      lambda: prepare_everything(state))


def _work(state, arguments):
    if state.wants_tls:
        failed = [lab_tests(state, 'tests/tls'), tempest_run.run(
            state, arguments or ['--regex', _QUICK])]
        return int(any(failed))
    return tempest_run.run(state, arguments) if arguments else everything(
        state)


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
