# SPDX-License-Identifier: Apache-2.0
"""Our wheel in an empty environment: setup.cfg names all that it imports.

``python -m clickos_lab.checks.wheel [WHEEL]`` installs the wheel without
extras and imports what then has to work, and again for each extra with its
packages. The wheel is by default one of this tree.
"""

import configparser
import os
import pathlib
import subprocess
import sys
import tempfile

from clickos_lab import distribution
from clickos_lab import openstack
from clickos_lab import paths
from clickos_lab import venv

#: The packages that each extra completes; the first need none.
_PACKAGES = {
    '': ('clickos_agent', 'clickos_client', 'clickos_osc', 'cosmos_client'),
    'api': ('clickos_api',),
    'horizon': ('clickos_dashboard',),
    'neutron': ('neutron_clickos',),
    'nova': ('nova_clickos', 'nova.virt.clickos'),
    'tacker': ('clickos_types', 'tacker_clickos'),
    'tempest': ('clickos_tempest_plugin',)}

_IMPORT = """
import importlib, pkgutil, sys
count = 0
if 'clickos_dashboard' in sys.argv:
    import django   # its modules read Django's settings
    django.setup()
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + '.'):
        if '.db.migrations' in module.name or module.name.endswith('.wsgi'):
            continue  # alembic and uWSGI run these
        importlib.import_module(module.name)
        count += 1
print(count)
"""


def main(arguments):
    """Check each extra; return how many failed."""
    _check_names()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        wheel = pathlib.Path(arguments[0]).resolve() if arguments else (
            distribution.wheel(paths.State(), folder / 'wheel'))
        failed = [extra for extra in _PACKAGES
                  if not _imports(folder, wheel, extra)]
    print(f'{len(_PACKAGES)} environments, {len(failed)} failed')
    return len(failed)


def _check_names():
    setup = configparser.ConfigParser()
    setup.read(paths.REPO / 'setup.cfg')
    extras = set(setup['options.extras_require'])
    tops = {name for names in _PACKAGES.values() for name in names}
    packages = set(setup['options']['packages'].split())
    missing = {name for name in packages
               if not any(name == t or name.startswith(t + '.')
                          for t in tops)}
    if extras != set(filter(None, _PACKAGES)) or missing:
        sys.exit(f'setup.cfg: extras {sorted(extras)}; packages that no '
                 f'environment imports: {sorted(missing)}')
    unlisted = _of_tree(setup['options']['package_dir']) - packages
    if unlisted:
        sys.exit(f'setup.cfg: packages: lacks {sorted(unlisted)}')


def _of_tree(package_dir):
    """Return the packages in the folders of a package_dir."""
    found = set()
    for line in filter(None, package_dir.splitlines()):
        top, _, folder = line.partition(' = ')
        root = paths.REPO / folder
        for place in root.rglob('__init__.py'):
            below = place.parent.relative_to(root).parts
            found.add('.'.join((top, *below)))
    return found


def _imports(folder, wheel, extra):
    """Install the wheel in an environment of its own and import it."""
    place = folder / (extra or 'none')
    wanted = f'{wheel}[{extra}]' if extra else wheel
    uv = venv.uv(paths.State())
    _run([uv, 'venv', '--quiet', '--python', sys.executable, place])
    python = place / 'bin/python'
    _run([uv, 'pip', 'install', '--quiet', '--python', python,
          '--constraint', openstack.requirements(), wanted])
    done = subprocess.run([python, '-I', '-c', _IMPORT, *_PACKAGES[extra]],
                          capture_output=True, text=True, env={
                              **os.environ, 'DJANGO_SETTINGS_MODULE':
                              'openstack_dashboard.settings'})
    what = f'extra {extra}' if extra else 'without extras'
    print(f'{what}: {done.stdout.strip() or 0} modules imported')
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1])
    return done.returncode == 0


def _run(command):
    subprocess.run([str(word) for word in command], check=True)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
