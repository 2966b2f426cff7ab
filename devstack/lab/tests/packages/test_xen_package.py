# SPDX-License-Identifier: Apache-2.0
"""The package of patched Xen in a fresh Debian: it comes, and it goes.

``CLICKOS_PACKAGES`` names a folder with all packages.
"""

import os
import pathlib
import unittest

from clickos_lab import debian_root
from clickos_lab import debs
from clickos_lab import paths
from clickos_lab.xen import patched

_PROGRAMS = tuple(f'{patched.PROGRAMS_FOLDER}/{name}'
                  for name in ('xl', 'oxenstored', 'xenconsoled'))
_DIVERTED = (*_PROGRAMS, '/usr/sbin/cosmosd')
#: of the programs that use libxl
_LINKED = (_PROGRAMS[0], '/usr/sbin/cosmosd')


class XenPackageTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        state = paths.State()
        folder = pathlib.Path(os.environ['CLICKOS_PACKAGES'])
        self.packages = {path.name.split('_')[0]: path
                         for path in folder.glob('*.deb')}
        self.machine = self.enterContext(debian_root.DebianRoot(
            state, state.root / 'packages/root'))

    def sums(self, suffix=''):
        """Return the checksums of the files, by their places."""
        names = ' '.join(f'{name}{suffix}' for name in _DIVERTED)
        lines = self.machine.run(f'sha256sum {names}').splitlines()
        return {line.split()[1].removesuffix('.stock'): line.split()[0]
                for line in lines}

    def library(self, program):
        """Return the libxl that a program finds."""
        return self.machine.run(
            f'ldd {program} | sed -n "s/.*libxenlight.* => \\(.*\\) .*/\\1/p"')

    def test_it_takes_the_place_of_files_and_gives_it_back(self):
        self.machine.run('useradd --system nova')
        package = self.packages.pop(f'clickos-{debs.XEN}')
        self.machine.install([*self.packages.values()])
        self.machine.install([*self.packages.values(), package])
        stock, ours = self.sums('.stock'), self.sums()
        for name, digest in ours.items():
            self.assertNotEqual(stock[name], digest, name)
        own = f'{patched.FOLDER}/libxenlight.so.4.17'
        self.assertEqual([own] * 2, [*map(self.library, _LINKED)])
        self.assertIn('0001-', self.machine.run(f'cat {patched.PATCHES}'))
        self.assertIn('cosmosd', self.machine.run('cosmosd --version'))
        # An upgrade keeps what it has diverted.
        self.machine.run('DEBIAN_FRONTEND=noninteractive apt-get install -y '
                         '--reinstall /packages/clickos-xen_*.deb')
        self.assertEqual((stock, ours), (self.sums('.stock'), self.sums()))
        self.machine.run('apt-get remove -y clickos-xen')
        self.assertEqual(stock, self.sums())
        self.assertNotIn(own, [*map(self.library, _LINKED)])
        self.assertEqual('', self.machine.run(
            'dpkg-divert --list clickos-xen; ls -d /usr/lib/clickos/xen '
            '/etc/xen/scripts/vale-port 2>/dev/null || true'))
