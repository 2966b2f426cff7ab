# SPDX-License-Identifier: Apache-2.0
"""Limits that the guests of a VDU share, through a VNF's life."""

from clickos_client import vnf
from tacker import objects

from tacker_clickos import clickos_api
from tacker_clickos import exception
from tacker_clickos import shared
from tacker_clickos import state
from tacker_clickos import update
from tacker_clickos.vnfd import loader
from tacker_clickos.vnfd import mapping
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import test_scaling

GROUP = vnf.limits_group(base.VNF_ID, 'VDU1')
RATE = 2500000


class SharedTest(test_scaling.ScaleTestCase):
    """The catalog's shaper."""

    TEMPLATE = 'shaper'

    def setUp(self):
        super().setUp()
        self.vdus = loader.load(str(self.package), 'simple').vdus

    def totals(self):
        """Return {name: (kind, handler, total)} as declared last."""
        return {each['name']: (each['kind'], each['handler'], each['total'])
                for each in self.cloud.limits[GROUP]['limits']}

    def test_an_instantiation_declares_limits_and_writes_no_share(self):
        self.assertEqual(('rate', 'to_right.share', 1250000),
                         self.totals()['to_right'])
        self.assertEqual(('quota', 'quota.share', 10 ** 15),
                         self.totals()['quota'])
        self.assertEqual([['VDU1-0']], self.cloud.declared)
        (server,) = self.cloud.servers
        self.assertEqual([], self.cloud.state(server)['writes'])
        self.assertEqual(['VDU1'], state.params(self.info)[state.SHARED])
        state.show(self.vnf)
        self.assertEqual('["VDU1"]', self.vnf.vnf_metadata[state.SHARED])

    def test_guests_that_come_and_go_are_declared(self):
        self.out(level=2)
        operation = self.operation('SCALE_IN', 1, 2)
        self.carry_out(operation)
        self.record(operation)
        # A guest that leaves is no member any more while it still runs.
        self.assertEqual(
            [['VDU1-0'], ['VDU1-0', 'VDU1-1', 'VDU1-2'],
             ['VDU1-0', 'VDU1-1']], self.cloud.declared)

    def test_a_guest_without_a_share_joins_no_chain(self):
        self.cloud.refuse[GROUP] = 409, 'other', 'a round'
        with self.assertRaisesRegex(exception.ClickOSError, 'a round'):
            self.carry_out(self.operation('SCALE_OUT', 1, 0))
        self.assertEqual(['VDU1-0'], self.names())

    def test_a_guest_leaves_though_nobody_takes_its_share(self):
        self.out()
        self.cloud.refuse[GROUP] = 409, 'other', 'a round'
        operation = self.operation('SCALE_IN', 0, 1)
        self.carry_out(operation)
        self.assertEqual(['VDU1-0'], self.names())

    def test_a_heal_declares_the_new_server(self):
        (vnfc,) = self.info.vnfc_resource_info
        before = state.server_id(vnfc)
        self.cloud.servers[before].status = 'ERROR'
        self.driver.heal_vnf(
            context=None, vnf_instance=self.vnf,
            vim_connection_info=base.vim_connection(),
            heal_vnf_request=objects.HealVnfRequest(
                vnfc_instance_id=[vnfc.id]))
        (after,) = self.cloud.servers
        self.assertNotEqual(before, after)
        self.assertEqual([after], self.cloud.limits[GROUP]['servers'])

    def test_a_termination_forgets_the_limits(self):
        self.driver.delete(None, None, base.VNF_ID, dict(base.ACCESS),
                           vnf_instance=self.vnf,
                           terminate_vnf_req=objects.TerminateVnfRequest())
        self.assertEqual({}, self.cloud.limits)

    def change(self, **request):
        """Update properties of the running VNF."""
        return update.Update(
            self.vdus, self.info, state.in_force(self.vnf), request).apply(
                shared_client(self), base.VNF_ID)

    def test_an_update_changes_a_limit_and_no_handler(self):
        values, _revision = self.change(to_right=RATE)
        self.assertEqual(RATE, values['to_right'])
        self.assertEqual(RATE, self.totals()['to_right'][2])
        (server,) = self.cloud.servers
        self.assertEqual([], self.cloud.state(server)['writes'])

    def test_an_update_that_nobody_takes_is_refused(self):
        self.cloud.refuse[GROUP] = 400, 'bad-request', 'no total'
        with self.assertRaisesRegex(exception.UpdateFailed,
                                    'shared limits: .*no total'):
            self.change(to_right=RATE)

    def test_no_guest_has_a_limit_of_its_own(self):
        with self.assertRaisesRegex(exception.PropertyRefused,
                                    'to_right.*all guests share it'):
            self.change(guests={'VDU1-0': {'to_right': RATE}})

    def test_other_vdus_stay_as_they_are(self):
        shared.declare(shared_client(self), base.VNF_ID, {}, {}, {})
        self.assertEqual([['VDU1-0']], self.cloud.declared)


def shared_client(case):
    """Return a clickos_api.Client of the test's cloud."""
    return clickos_api.Client(case.cloud)


class DescriptorTest(base.TestCase):
    """What of a VNFD may be shared."""

    def fault(self, **entry):
        """Return the fault of a property, or None."""
        faults = []
        mapping.properties('p', {'x': entry}, faults)
        return str(faults[0]) if faults else None

    def test_rates_and_integers_with_a_handler(self):
        for entry, words in (
                ({'type': 'rate', 'unit': 'Bps', 'handler': 's.share'}, None),
                ({'type': 'integer', 'handler': 'q.share'}, None),
                ({'type': 'port', 'handler': 'q.share'}, 'unknown key'),
                ({'type': 'string', 'handler': 'q.share'}, 'unknown key'),
                ({'type': 'integer', 'define': 'X'}, 'needs a handler')):
            with self.subTest(entry):
                found = self.fault(shared=True, **entry)
                if words:
                    self.assertIn(words, found)
                else:
                    self.assertIsNone(found)
        self.assertIn('expected true or false', self.fault(
            type='integer', handler='q.share', shared='yes'))
        self.assertIn('only a whole property', self.fault(
            type='list', handler='a.b',
            items={'type': 'integer', 'shared': True}))

    def test_no_more_than_the_service_takes(self):
        with self.assertRaisesRegex(exception.VnfdInvalid, '9 shared'):
            mapping.properties('p', {
                f'x{n}': {'type': 'integer', 'handler': f'q{n}.share',
                          'shared': True} for n in range(9)}, [])
