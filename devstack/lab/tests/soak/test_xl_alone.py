# SPDX-License-Identifier: Apache-2.0
"""xl with our patches parses vifs, and libxl's types, without a hypervisor."""

import json
import subprocess

from clickos_lab import paths
from clickos_lab.xen import image
from clickos_lab.xen import xen_paths
from tests.soak import test_store_alone

#: Keys of a vif: the fields that xl makes; None for the other kind of vif.
_VALID = {
    'type=vale,segment=7': {'devid': 0, 'segment': 7},
    ' switch=vale1, segment=7, , type=vale': {
        'devid': 0, 'segment': 7, 'switch_name': 'vale1'},
    'type=vale,segment=4294967295,mac=00:16:3E:ab:cd:EF,mtu=9000,slots=2048': {
        'devid': 0, 'segment': 4294967295, 'mac': '00:16:3e:ab:cd:ef',
        'mtu': 9000, 'slots': 2048},
    'type=vale,segment=1,port=a.b,allow=10.0.0.1/32;fd00::1,devid=3': {
        'segment': 1, 'port': 'a.b', 'allow': '10.0.0.1/32;fd00::1',
        'devid': 3},
    'type=vale,segment=1,script=/bin/true,backend=0,segment=2': {
        'devid': 0, 'segment': 2, 'script': '/bin/true',
        'backend_domname': '0'},
    'bridge=vale,type=vif': None,
    'bridge=br0,vifname=type': None}
#: Keys of a vif: the cause that xl names.
_INVALID = {
    'type=vale,segment=':
        'vale: segment "" is not a number from 0 to 4294967295',
    'type=vale,segment=-1': 'vale: segment "-1" is not a number',
    'type=vale,segment=0x7': 'vale: segment "0x7" is not a number',
    'type=vale,segment=4294967296':
        'vale: segment "4294967296" is not a number',
    'type=vale,mtu=65536': 'vale: mtu "65536" is not a number from 0 to 65535',
    'type=vale,segment=99999999999999999999': 'is not a number',
    'type=vale,segment=7 8': 'vale: segment "7 8" is not a number',
    'segment=7 ,type=vale': 'vale: segment "7 " is not a number',
    'type=vale,mtu=1e3': 'vale: mtu "1e3" is not a number',
    'type=vale,slots=many': 'vale: slots "many" is not a number',
    'type=vale,devid=first': 'vale: devid "first" is not a number',
    'type=vale,mac=00:16:3e:00:00': 'vale: mac "00:16:3e:00:00" is no address',
    'type=vale,mac=00:16:3e:00:00:07:08': 'is no address',
    'type=vale,mac=00-16-3e-00-00-07': 'is no address',
    'type=vale,mac=': 'vale: mac "" is no address',
    'type=vale,type=vif': 'vale: type "vif" is a second type',
    'type=vale,Segment=7': 'vale: unknown key "Segment=7"',
    'type=vale,segment': 'vale: unknown key "segment"',
    'type=vale,vifname=x': 'vale: unknown key "vifname=x"'}


class XlTest(test_store_alone.AloneCase):

    def setUp(self):
        super().setUp()
        found = xen_paths.XenPaths(paths.State())
        self.tools = found.root / 'source/xen/tools'
        libraries = [self.tools / 'libs/light', self.tools / 'libs/util',
                     self.packages / 'usr/lib/x86_64-linux-gnu']
        self.env = {'FAKEXEN': str(self.daemon.folder),
                    'XENSTORED_PATH': str(self.daemon.folder / 'socket'),
                    'LD_PRELOAD': str(self.library),
                    'LD_LIBRARY_PATH': ':'.join(map(str, libraries)),
                    'PATH': '/usr/bin:/bin'}

    def _run(self, program, *arguments):
        return subprocess.run([self.tools / program, *arguments],
                              env=self.env, capture_output=True, text=True,
                              timeout=60)

    def _parsed(self, vifs):
        """Let xl parse a configuration, without making a guest."""
        path = self.daemon.folder / 'keys.cfg'
        path.write_text(f'{image.config("pvh", "keys")}'
                        f'vif = {json.dumps(vifs)}\n')
        return self._run('xl/xl', '-N', 'create', path)

    def test_keys_that_xl_takes(self):
        for vif, fields in _VALID.items():
            with self.subTest(vif):
                done = self._parsed([vif])
                self.assertEqual(0, done.returncode, done.stderr)
                made = json.loads(done.stdout)
                self.assertEqual([fields] if fields else None,
                                 made.get('vales'))
                self.assertEqual(fields is None, 'nics' in made)

    def test_both_kinds_of_vif_have_numbers_of_their_own(self):
        done = self._parsed(['bridge=br0', 'type=vale,segment=1',
                             'bridge=br1', 'type=vale,segment=2'])
        made = json.loads(done.stdout)
        self.assertEqual([0, 1], [vale['devid'] for vale in made['vales']])
        self.assertEqual([1, 2], [vale['segment'] for vale in made['vales']])
        self.assertEqual([0, 1], [nic['devid'] for nic in made['nics']])

    def test_keys_that_xl_refuses(self):
        for vif, cause in _INVALID.items():
            with self.subTest(vif):
                done = self._parsed([vif])
                self.assertEqual(1, done.returncode)
                self.assertIn(cause, done.stderr)

    def test_types_and_their_json(self):
        """Xen's own test gives all types of libxl random values."""
        done = self._run('libs/light/testidl')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn('Testing libxl_device_vale_copy, done', done.stdout)
        self.assertNotIn('Huh?', done.stdout)

    def test_an_attached_vif_is_parsed(self):
        done = self._run('xl/xl', '-N', 'network-attach', '5', 'type=vale',
                         'segment=6,mtu=1400', 'port=late')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual({'segment': 6, 'mtu': 1400, 'port': 'late'},
                         json.loads(done.stdout.removeprefix('vale: ')))
        done = self._run('xl/xl', '-N', 'network-attach', '5', 'type=vale',
                         'segment=6', 'bridge=br0')
        self.assertEqual(1, done.returncode)
        self.assertIn('vale: unknown key "bridge=br0"', done.stderr)

    def test_vifs_are_listed(self):
        backend = '/local/domain/0/backend/vale/5/1'
        for path, value in (
                ('/libxl/5/device/vale/1/backend', backend),
                ('/libxl/5/device/vale/1/mac', '00:16:3e:00:00:07'),
                (f'{backend}/switch', 'vale0'), (f'{backend}/state', '4'),
                (f'{backend}/segment', '4294967295'),
                (f'{backend}/port', 'late')):
            self.dom0.write(path, value)
        done = self._run('xl/xl', 'network-list', '5')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(
            ['vale/1', '0', '00:16:3e:00:00:07', 'vale0', '4294967295', '4',
             'late', backend], done.stdout.splitlines()[-1].split())
