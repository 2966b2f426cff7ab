# SPDX-License-Identifier: Apache-2.0
"""The commands of the lab; see ``make help`` for what they are for."""

import argparse
import os
import signal
import sys
import traceback

from clickos_lab import errors
from clickos_lab.host import command as host_command
from clickos_lab import log
from clickos_lab import paths
from clickos_lab.xen import command as xen_command
from clickos_lab.xen import variants


#: Tiers whose suites need no root and no service.
_OF_ANY_USER = ('lint', 'unit')


#: In the environment: the process that has prepared for its next program.
_PREPARED = 'CLICKOS_LAB_PREPARED'

#: The compute hosts that a command takes.
_HOSTS = {'up': ('process', *variants.OF_HOSTS, 'two'),
          'demo': ('process', *variants.OF_HOSTS)}


def main():
    """Run one command; 0 when it succeeded, 1 with a message if not."""
    arguments = _parse()
    signal.signal(signal.SIGTERM, _stop)
    try:
        state = paths.State()
        return _run(state, arguments)
    except errors.LabError as e:
        log.warn(f'error: {e}')
        return 1
    except KeyboardInterrupt:
        log.warn('interrupted')
        return 130


def _run(state, arguments):
    """Run a command; log an unexpected exception with its trace."""
    try:
        return arguments.run(state, arguments) or 0
    except errors.LabError:
        raise
    except Exception as e:
        if not state.log.is_dir():
            raise
        log_file = state.log / 'unexpected.log'
        with open(log_file, 'a') as f:
            traceback.print_exc(file=f)
        raise errors.LabError(f'{type(e).__name__}: {e}; see {log_file}')


def _stop(_number, _frame):
    # Like Ctrl-C, so that everything is cleaned up on the way out.
    raise KeyboardInterrupt


def _parse():
    parser = argparse.ArgumentParser(prog='clickos_lab')
    commands = parser.add_subparsers(required=True)
    for name, run, text in (
            ('prepare', _prepare, 'install and build everything'),
            ('up', _up, 'start the services'),
            ('down', _down, 'stop the services'),
            ('demo', _demo, 'show the main job on real services'),
            ('try', _try, 'show a firewall guest, without OpenStack'),
            ('test', _test, 'run the test suites'),
            ('host', host_command.run, 'act on the compute host'),
            ('xen', xen_command.run, 'a Xen host in QEMU'),
            ('image', xen_command.build_image, 'build the guests of Xen'),
            ('click', _click, 'build click and its relatives'),
            ('csars', _csars, 'build and check the VNFs\' packages'),
            ('figures', _figures, 'measure and draw the papers\' figures'),
            ('docs', _docs, 'build the site of the documents'),
            ('packages', _packages, 'build Debian packages'),
            ('release', _release, 'build and check a release'),
            ('clean', _clean, 'stop and remove everything')):
        command = commands.add_parser(name, help=text)
        command.set_defaults(run=run)
        if name in ('demo', 'try'):
            command.add_argument('--keep', action='store_true',
                                 help='leave everything running')
        if name == 'demo':
            command.add_argument('--ui', action='store_true',
                                 help='first do the job in a browser')
        if name in _HOSTS:
            command.add_argument('--host', default='process',
                                 choices=_HOSTS[name],
                                 help='xen: with a Xen host in QEMU, of'
                                      ' patched Xen; xen-stock: of Debian\'s;'
                                      ' two: with a second process host')
        if name == 'test':
            command.add_argument('suites', nargs='*', help='default: all')
            command.add_argument('--tier', default='test', choices=(
                'test', 'lint', 'unit', 'integration'))
        if name == 'figures':
            command.add_argument('figures', nargs='*', help='default: all')
        if name == 'image':
            xen_command.add_image_arguments(command)
        if name == 'release':
            command.add_argument('--into', help='folder: build there, inside '
                                                'the worktree of a release')
            command.add_argument('--from', dest='older', help='folder with '
                                 'the packages that an upgrade begins with')
        if name == 'host':
            host_command.add_arguments(command)
        if name == 'xen':
            xen_command.add_arguments(command)
    return parser.parse_args()


def _prepare(state, arguments):
    from clickos_lab import prepare
    from clickos_lab.xen import background
    wanted = variants.OF_HOSTS.get(getattr(arguments, 'host', None))
    with background.started(state, wanted):
        prepare.everything(state)
    if wanted:
        prepare.xen(state, wanted)


def _up(state, arguments):
    _in_venv(state, arguments)
    from clickos_lab.config import hosts
    from clickos_lab import dashboard
    from clickos_lab import lab
    others = {**dict.fromkeys(variants.OF_HOSTS, [hosts.XEN]),
              'two': [hosts.SECOND]}
    lab.Lab(state, others.get(arguments.host, [])).up()
    log.info(dashboard.invitation(state))


def _demo(state, arguments):
    _in_venv(state, arguments)
    from clickos_lab import demo
    host = 'xen' if arguments.host in variants.OF_HOSTS else arguments.host
    return demo.run(state, host, arguments.keep, arguments.ui)


def _try(state, arguments):
    from clickos_lab import trial
    return trial.run(state, arguments.keep)


def _test(state, arguments):
    from clickos_lab.suites import command
    # A wrong name ends it before the preparation, which takes minutes.
    command.chosen(state, arguments.suites, arguments.tier)
    _in_venv(state, arguments, arguments.tier in _OF_ANY_USER)
    return command.run(state, arguments.suites, arguments.tier)


def _down(state, _arguments):
    from clickos_lab import lab
    lab.Lab(state).down()


def _click(state, _arguments):
    from clickos_lab import rust
    rust.build_click(state)


def _csars(state, arguments):
    _in_venv(state, arguments)
    from clickos_lab.vnf import csars
    csars.run(state, arguments)


def _figures(state, arguments):
    _in_venv(state, arguments)
    from clickos_lab.papers import command
    command.run(state, arguments.figures)


def _docs(state, arguments):
    _in_venv(state, arguments, of_any_user=True)
    from clickos_lab.checks import site
    return site.main()


def _packages(state, arguments):
    _in_venv(state, arguments)
    from clickos_lab import debs
    debs.run(state, arguments)


def _release(state, arguments):
    from clickos_lab.release import command
    if not arguments.into:
        return command.run(state, arguments)
    _in_venv(state, arguments)
    return command.run_inside(state, arguments)


def _clean(state, _arguments):
    from clickos_lab import lab
    lab.Lab(state).clean()


def _in_venv(state, arguments, of_any_user=False):
    """Prepare, then go on as the Python of the virtual environment."""
    if os.environ.get(_PREPARED) == str(os.getpid()):
        return
    if sys.prefix == str(state.venv):
        # a shell that has read an openrc finds this Python first
        _become(os.path.realpath(sys.executable))
    if of_any_user:
        from clickos_lab import prepare
        prepare.tools(state)
    else:
        _prepare(state, arguments)
    os.environ[_PREPARED] = str(os.getpid())
    _become(str(state.tool('python')))


def _become(python):
    os.execv(python, [python, '-m', 'clickos_lab', *sys.argv[1:]])


if __name__ == '__main__':
    sys.exit(main())
