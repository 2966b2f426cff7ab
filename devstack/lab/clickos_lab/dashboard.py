# SPDX-License-Identifier: Apache-2.0
"""Horizon with our plugin: its settings and static files."""

import shutil

from clickos_lab import apt
from clickos_lab import axe
from clickos_lab.config import horizon
from clickos_lab.config import site
from clickos_lab import log
from clickos_lab import paths
from clickos_lab import settings
from clickos_lab import shell
from clickos_lab import stamps
from clickos_lab.vnf import csar

#: Folders of the plugin; Horizon reads those of the same names below
#: openstack_dashboard/local.
_FOLDERS = ('enabled', 'local_settings.d')


def ensure(state):
    """Link the plugin into Horizon; bring static files to their folder.

    Horizon's own are collected and compressed again if a library or the
    plugin's registration changed.
    """
    plugin = _packages(state) / 'clickos_dashboard'
    _link(state, plugin)
    wanted = stamps.digest([state.venv / 'requirements.stamp',
                            *plugin.glob('enabled/*.py')])
    stamp = state.static / 'made.stamp'
    if not stamps.fresh(stamp, wanted):
        with log.step('static files of the dashboard'):
            _collect(state)
            stamp.write_text(wanted)
    shutil.copytree(plugin / 'static', state.static, dirs_exist_ok=True)
    _build_catalog(state)


def _build_catalog(state):
    """Build the packages that users publish; Horizon's user reads them."""
    wanted = stamps.digest(p for p in csar.TEMPLATES.rglob('*') if p.is_file()
                           and '__pycache__' not in p.parts)
    stamp = state.catalog / 'made.stamp'
    if stamps.fresh(stamp, wanted):
        return
    state.catalog.mkdir(exist_ok=True)
    state.catalog.chmod(0o755)
    for name in csar.names():
        target = state.catalog / f'{name}.csar'
        csar.build(name, target)
        target.chmod(0o644)
    stamp.write_text(wanted)


def provide_tools(state):
    """Provide what the tests of the dashboard need."""
    apt.ensure(state, apt.BROWSER_PACKAGES)
    axe.ensure(state)


def show(state):
    """Do the main job in a browser, and save pictures.

    :raises LabError: if the job fails
    """
    provide_tools(state)
    folder, pictures = paths.REPO / 'devstack/lab', state.root / 'pictures'
    with log.step('the main job in a browser'):
        shell.run([state.tool('python'), '-m', 'unittest',
                   'tests.lab.test_browser'], state.log / 'browser.log',
                  cwd=folder, env=shell.environment(
                      state, PYTHONPATH=str(folder), PICTURES=str(pictures)))
    log.info(f'  pictures: {pictures}')


def _collect(state):
    horizon.write(site.Site(state, settings.Settings.load(state)))
    shutil.rmtree(state.static, ignore_errors=True)
    _manage(state, 'collectstatic', '--noinput')
    _manage(state, 'compress', '--force')


def _packages(state):
    (packages,) = state.venv.glob('lib/python3.*/site-packages')
    return packages


def invitation(state):
    """Return where the dashboard is, and where its password stands."""
    url = settings.Settings.load(state).url('horizon', '/clickos/')
    return (f'dashboard: {url} (user demo, domain default, password in '
            f'{state.root}/openrc-demo)')


def _link(state, plugin):
    """Put our files where Horizon looks for those of an operator."""
    local = _packages(state) / 'openstack_dashboard/local'
    links = {local / 'local_settings.py': horizon.path(state)}
    for folder in _FOLDERS:
        for path in (plugin / folder).glob('_90_*.py'):
            links[local / folder / path.name] = path
    for link, target in links.items():
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def _manage(state, *arguments):
    env = shell.environment(
        state, DJANGO_SETTINGS_MODULE='openstack_dashboard.settings')
    shell.run([state.tool('python'), '-m', 'django', *arguments],
              state.log / 'dashboard.log', cwd='/', env=env)
