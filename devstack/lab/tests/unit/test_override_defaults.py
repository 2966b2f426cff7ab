# SPDX-License-Identifier: Apache-2.0
"""The plugin of DevStack leaves what a user has set."""

import re
import subprocess

from clickos_lab import paths
from tests.unit import base

_FILE = paths.REPO / 'devstack/override-defaults'
#: DevStack's own default before it reads the file.
_BEFORE = 'VIRT_DRIVER=${VIRT_DRIVER:-libvirt}'


def _names():
    return re.findall(r'^clickos_default (\w+)', _FILE.read_text(), re.M)


class OverrideDefaultsTest(base.TestCase):

    def values(self, localrc='', exported='', top='.localrc.auto'):
        """Return the variables after DevStack has read the file."""
        directory = self.state.root
        (directory / '.localrc.auto').unlink(missing_ok=True)
        (directory / 'localrc').unlink(missing_ok=True)
        (directory / top).write_text(localrc)
        shown = '\n'.join(f'echo "{name}=${name}"' for name in _names())
        script = (f'set -eu\n{exported}\nTOP_DIR={directory}\n'
                  f'source {directory / top}\n{_BEFORE}\nset +u\n'
                  f'source {_FILE}\n{shown}\n')
        text = subprocess.run(['bash', '-c', script], check=True, text=True,
                              stdout=subprocess.PIPE, cwd=directory).stdout
        return dict(line.split('=', 1) for line in text.splitlines())

    def test_what_is_unset_gets_our_values(self):
        found = self.values()
        self.assertEqual('clickos', found['VIRT_DRIVER'])
        self.assertEqual('vale', found['Q_ML2_PLUGIN_MECHANISM_DRIVERS'])
        self.assertEqual('', found['ML2_L3_PLUGIN'])
        self.assertGreater(len(found), 9)

    def test_each_variable_of_the_user_stays(self):
        ours = self.values()
        for name in _names():
            for top in ('.localrc.auto', 'localrc'):
                found = self.values(f' {name}=mine', top=top)
                self.assertEqual({**ours, name: 'mine'}, found, name)
            found = self.values(exported=f'export {name}=mine')
            self.assertEqual({**ours, name: 'mine'}, found, name)

    def test_a_name_that_only_contains_ours_is_another(self):
        found = self.values('MY_VIRT_DRIVER=x\nVIRT_DRIVER_X=x\n')
        self.assertEqual('clickos', found['VIRT_DRIVER'])

    def test_nothing_else_assigns(self):
        for line in _FILE.read_text().splitlines():
            self.assertNotRegex(line, r'^(?!CLICKOS_)[A-Z_0-9]+=')
