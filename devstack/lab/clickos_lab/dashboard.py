# SPDX-License-Identifier: Apache-2.0
"""Horizon with our plugin: its settings and static files."""

import shutil

from clickos_lab.config import horizon
from clickos_lab.config import site
from clickos_lab import say
from clickos_lab import settings
from clickos_lab import shell
from clickos_lab import stamps

#: Folders of the plugin; Horizon reads those of the same names below
#: openstack_dashboard/local.
_FOLDERS = ('enabled', 'local_settings.d')


def ensure(state):
    """Link the plugin into Horizon; collect and compress static files.

    The stamps of the Python packages tell whether anything changed.
    """
    wanted = stamps.digest(state.venv / name for name in
                           ('requirements.stamp', 'ours.stamp'))
    stamp = state.venv / 'dashboard.stamp'
    if stamps.fresh(stamp, wanted) and state.static.exists():
        return
    with say.step('static files of the dashboard'):
        horizon.write(site.Site(state, settings.Settings.load(state)))
        _link(state)
        shutil.rmtree(state.static, ignore_errors=True)
        _manage(state, 'collectstatic', '--noinput')
        _manage(state, 'compress', '--force')
        stamp.write_text(wanted)


def invitation(state):
    """Return where the dashboard is, and where its password stands."""
    url = settings.Settings.load(state).url('horizon', '/clickos/')
    return (f'dashboard: {url} (user demo, domain default, password in '
            f'{state.root}/openrc-demo)')


def _link(state):
    """Put our files where Horizon looks for those of an operator."""
    (packages,) = state.venv.glob('lib/python3.*/site-packages')
    local = packages / 'openstack_dashboard/local'
    links = {local / 'local_settings.py': horizon.path(state)}
    for folder in _FOLDERS:
        for path in (packages / 'clickos_dashboard' / folder).glob('_*.py'):
            if path.name != '__init__.py':
                links[local / folder / path.name] = path
    for link, target in links.items():
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def _manage(state, *arguments):
    env = shell.environment(
        state, DJANGO_SETTINGS_MODULE='openstack_dashboard.settings')
    shell.run([state.tool('python'), '-m', 'django', *arguments],
              state.log / 'dashboard.log', cwd='/', env=env)
