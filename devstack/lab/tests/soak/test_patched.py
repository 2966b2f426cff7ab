# SPDX-License-Identifier: Apache-2.0
"""xl with our patches: vifs of the type vale on the real valed."""

import json

from clickos_lab.xen import image
from clickos_lab.xen import toolstack
from clickos_lab.xen import variants
from tests.xen import guest
from tests.xen import test_cosmos
from tests.xen import test_net
from tests.xen import test_plug
from tests.xen import test_toolstack


#: The segment of a VXLAN network, and the last that the switch takes.
_VXLAN, _LAST = 4096 + 0xffffff, 0xffffffff


class PatchedTest(test_net.ValePorts):
    """xl keeps the port of a guest through its whole life."""

    variant = variants.PATCHED

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        toolstack.add_script_settings(contents)

    def _xl(self, arguments):
        return self.dom0.run(f'xl {arguments}', timeout_s=300)

    def _ports(self):
        ports = json.loads(self._vale('-o json ports vale0'))
        return {p['port']: p for p in ports if p['port'] != 'client'}

    def _create(self, keys):
        one = guest.Guest(self.dom0, 'vale1', 'pvh',
                          f'vif = ["type=vale,{keys}"]')
        self.addCleanup(self._xl, 'destroy vale1')
        return one.create()

    def test_create_save_restore_and_destroy(self):
        one = self._create(f'switch=vale0,segment={_VXLAN},'
                           f'mac={test_net.mac(1)},'
                           f'allow={test_net.ip(1)}/32')
        self.start(one, test_net.responder(1))
        self.ping('c', test_net.ip(1))
        first = f'dom{one.domid}-0'
        port = self._ports()[first]
        self.assertEqual((_VXLAN, test_net.mac(1)),
                         (port['segment'], port['mac']))

        self.assertEqual(0, self._xl('save vale1 /run/saved').status)
        self.assertEqual({}, self._ports())
        self.assertEqual(0, self._xl('restore -e /run/saved').status)
        domid = int(self._xl('domid vale1').out)
        self.assertEqual([f'dom{domid}-0'], list(self._ports()))
        self.wait_for(lambda: self._state(domid) == '4')
        self.ping('c', test_net.ip(1))

        self.assertEqual(0, self._xl('destroy vale1').status)
        self.assertEqual({}, self._ports())
        left = self.dom0.run('xenstore-ls -f | grep -E '
                             f'"(vale|device/vale|libxl)/{domid}(/| )"')
        self.assertEqual('', left.out)

    def _attach(self, port, options):
        self._vale(f'attach vale0:{port} --segment {_VXLAN} {options}')

    def _state(self, domid):
        return self.dom0.run('xenstore-read /local/domain/0/backend/vale/'
                             f'{domid}/0/state').out.strip()

    def test_attach_list_and_detach(self):
        one = self._create('switch=vale0,segment=5')
        for name in ('vale/1', test_net.mac(1).upper()):
            with self.subTest(name):
                self._attach_and_list()
                done = self._xl(f'network-detach vale1 {name}')
                self.assertEqual(0, done.status, done.err)
                self.assertEqual([f'dom{one.domid}-0'], list(self._ports()))
                self.assertNotIn('vale/1', self._xl('network-list vale1').out)
        self._refused()

    def _attach_and_list(self):
        done = self._xl(f'network-attach vale1 type=vale segment={_LAST} '
                        f'mac={test_net.mac(1)},switch=vale0 port=late')
        self.assertEqual(0, done.status, done.err)
        self.assertEqual(_LAST, self._ports()['late']['segment'])
        lines = self._xl('network-list vale1').out.splitlines()
        vales = [line.split() for line in lines if line.startswith('vale/')]
        self.assertEqual(['vale/0', 'vale/1'], [v[0] for v in vales])
        self.assertEqual(['0', test_net.mac(1), 'vale0', str(_LAST)],
                         vales[1][1:5])
        self.assertEqual('late', vales[1][6])

    def _refused(self):
        """Neither a wrong key nor valed's refusal leaves a device."""
        for keys, cause in (('segment=6 bridge=br0', 'unknown key'),
                            ('segment=6 slots=100', 'slots'),
                            ('segment=0', 'outside 1 to 4294967295'),
                            ('segment=4294967296', 'is not a number')):
            done = self._xl(f'network-attach vale1 type=vale {keys}')
            self.assertNotEqual(0, done.status)
            self.assertIn(cause, done.err + done.out)
        self.assertNotIn('vale/1', self._xl('network-list vale1').out)
        self.assertNotEqual(0, self._xl('network-detach vale1 vale/1').status)

    def test_a_vif_that_valed_refuses_makes_no_guest(self):
        for keys, cause in (
                ('segment=5,slots=100', 'slots'),
                ('segment=5,switch=other', 'switch'),
                ('segment=0', 'vale: segment 0 is outside 1 to 4294967295'),
                ('', 'vale: segment 0 is outside 1 to 4294967295'),
                ('segment=x', 'vale: segment "x" is not a number'),
                ('segment=5,mac=no', 'vale: mac "no" is no address'),
                ('segment=5,bridge=br0', 'vale: unknown key "bridge=br0"')):
            with self.subTest(keys):
                self.dom0.put_text(
                    image.config('pvh', 'bad')
                    + f'vif = ["type=vale,{keys}"]\n', '/root/bad.cfg')
                done = self._xl('create -q -e /root/bad.cfg')
                self.assertNotEqual(0, done.status)
                self.assertIn(cause, done.err + done.out)
                self.assertNotEqual(0, self._xl('domid bad').status)
                self.assertEqual({}, self._ports())


class CosmosdTest(test_cosmos.CosmosdTest):
    """cosmosd, linked with the patched libxl, and all daemons patched."""

    variant = variants.PATCHED


class ToolstackTest(test_toolstack.OnEitherStore,
                    test_toolstack.ToolstackCase):
    """The same with ports of the switch."""

    variant = variants.PATCHED
    store = 'oxenstored'


class PlugTest(test_plug.PlugTest):
    """Interfaces come and go under the patched libxl."""

    variant = variants.PATCHED
