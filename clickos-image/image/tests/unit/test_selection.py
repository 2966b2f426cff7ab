# SPDX-License-Identifier: Apache-2.0
"""An image has the elements that its configuration needs."""

import unittest

import image
import selection


class SelectionTest(unittest.TestCase):

    def test_every_file_has_a_class_and_no_class_two_files(self):
        names = selection.classes()
        self.assertEqual(set(selection.of_groups(selection.groups())),
                         set(names.values()))

    def test_an_alias_is_its_element(self):
        self.assertEqual('traces/from_dump',
                         selection.classes()['FromTcpdump'])

    def test_a_configuration_has_its_classes_and_the_implicit_one(self):
        flat = 'a :: Counter(1);\nFromDevice@2 :: FromDevice(0);\n' \
            'c/d :: Tee;\n\nFromDevice@2 -> a -> c/d;\n'
        self.assertEqual(
            ['control/clickos_control', 'device/from_device',
             'standard/counter', 'standard/tee'], selection.of_flat(flat))

    def test_the_default_image_has_the_promised_classes(self):
        names = selection.class_names(
            selection.of_groups(selection.default_groups()))
        self.assertLess(names, set(selection.classes()))
        self.assertGreaterEqual(
            len(names), image.bound('min_default_image_classes'))

    def test_a_class_of_the_program_only_is_refused(self):
        with self.assertRaisesRegex(selection.UnknownClass,
                                    'no guest has the class KernelTap, Nope'):
            selection.of_flat('a :: Nope;\nb :: KernelTap;\n')

    def test_profiles_name_groups_and_features_follow_them(self):
        for profile, groups in selection.PROFILES.items():
            self.assertLessEqual(set(groups), set(selection.groups()),
                                 profile)
            features = selection.features(selection.of_groups(groups))
            self.assertEqual('regex' in groups, bool(features), profile)
