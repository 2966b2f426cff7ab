# SPDX-License-Identifier: Apache-2.0
"""Example values for the configurations of a package."""

from tacker_clickos.package import examples
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import values
from tests.unit.tacker_clickos import test_package


class ExamplesTest(test_package.PackageTestCase):

    def test_every_type_has_a_value(self):
        for kind in values.TYPES:
            prop = model.Property(
                'x', kind, define='X', unit='bps', format='$y',
                values=('one',) if kind == 'enum' else (),
                items=model.Property('y', 'ipv4'),
                fields={'y': model.Property('y', 'ipv4')})
            values.check(prop, examples._value(prop))

    def test_defaults_and_limits(self):
        for prop, value in (
                (model.Property('x', 'integer', minimum=7), 7),
                (model.Property('x', 'integer', minimum=7, default=9), 9)):
            self.assertEqual(value, examples._value(prop))

    def test_the_firewall(self):
        (found,) = examples.of_package(
            test_package.csar(test_package.files()))
        self.assertEqual(('VDU1', 2), (found.vdu, found.vifs))
