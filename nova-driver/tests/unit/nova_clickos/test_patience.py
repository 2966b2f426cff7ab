# SPDX-License-Identifier: Apache-2.0
"""Operations while cosmosd restarts."""

import pathlib
from unittest import mock

import tenacity

from nova_clickos import exception
from nova_clickos import patience
from tests.unit.nova_clickos import base


class PatienceTest(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.conf.config(group='clickos', cosmosd_patience=20)
        self.pauses = 0

    def test_the_driver_uses_each_verb_that_is_repeated(self):
        package = pathlib.Path(patience.__file__).parent
        text = ''.join(path.read_text() for path in package.rglob('*.py')
                       if path.name != 'patience.py')
        unused = [verb for verb in patience._REPEATABLE
                  if f"client.call('{verb}'" not in text]
        self.assertEqual([], unused)

    def at_first_pause(self, act):
        """Do something instead of the first pause of a call."""
        def pause(_seconds):
            self.pauses += 1
            if self.pauses == 1:
                act()
        # Retrying has its default pause since it was defined.
        real = tenacity.Retrying
        patcher = mock.patch.object(
            tenacity, 'Retrying', autospec=True,
            side_effect=lambda **given: real(sleep=pause, **given))
        patcher.start()
        self.addCleanup(patcher.stop)

    def test_a_removal_waits_for_cosmosd(self):
        self.spawn(base.instance())
        self.cosmosd.stop()
        self.at_first_pause(self.cosmosd.start)
        self.driver.destroy(None, base.instance(), None)
        self.assertEqual({}, self.cosmosd.guests)
        self.assertEqual(1, self.pauses)

    def test_a_start_waits_for_cosmosd(self):
        self.cosmosd.stop()
        self.at_first_pause(self.cosmosd.start)
        self.spawn(base.instance())
        self.assertEqual([base.UUID], list(self.cosmosd.guests))

    def test_a_start_whose_answer_is_lost_begins_again(self):
        self.at_first_pause(lambda: None)
        self.cosmosd.faults['create'] = None

        def mended(client, verb, call=patience.PatientClient.call, **args):
            if verb == 'destroy':
                self.cosmosd.faults.clear()
            return call(client, verb, **args)
        with mock.patch.object(patience.PatientClient, 'call', autospec=True,
                               side_effect=mended):
            self.spawn(base.instance())
        self.assertEqual(2, self.cosmosd.verbs().count('create'))
        self.assertEqual([base.UUID], list(self.cosmosd.guests))

    def test_later_calls_of_an_outage_do_not_wait(self):
        self.conf.config(group='clickos', cosmosd_patience=0)
        self.cosmosd.stop()
        self.at_first_pause(self.fail)
        for _call in range(3):
            self.assertRaises(exception.CosmosdUnavailable,
                              self.driver.list_instance_uuids)
        self.assertEqual(0, self.pauses)
