# SPDX-License-Identifier: Apache-2.0
"""An image has the elements that its configuration needs."""

import shutil
import sys
import tempfile
import unittest
from unittest import mock

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

    def test_each_profile_has_the_promised_classes(self):
        for profile, key in (('core', 'min_default_image_classes'),
                             ('full', 'min_full_image_classes'),
                             ('ids', 'min_ids_image_classes')):
            names = selection.class_names(selection.of_groups(
                selection.of_profile(profile)))
            self.assertIsNone(image.broken(key, len(names)))

    def test_only_the_image_ids_inspects_and_core_has_no_group_of_its_own(
            self):
        core, full, ids = map(selection.of_profile, selection.PROFILES)
        self.assertLess(set(core), set(full))
        self.assertEqual({'inspect'}, set(ids) - set(core))
        self.assertEqual({'inspect'}, set(selection.groups()) - set(full))
        self.assertEqual(set(selection.classes().values()),
                         set(selection.of_groups(full + ['inspect'])))

    def test_a_broken_bound_is_told(self):
        for key, value, words in (
                ('max_default_image_kib', 1e6, '1000000.0, expected at most'),
                ('min_default_image_classes', 1, '1, expected at least')):
            self.assertIn(f'{key}: {words}', image.broken(key, value))

    def test_a_class_of_the_program_only_is_refused(self):
        with self.assertRaisesRegex(selection.UnknownClass,
                                    'no guest has the class KernelTap, Nope'):
            selection.of_flat('a :: Nope;\nb :: KernelTap;\n')

    def test_features_follow_the_groups(self):
        for profile in selection.PROFILES:
            features = selection.features(selection.of_groups(
                selection.of_profile(profile)))
            self.assertEqual(profile != selection.CORE, bool(features))


class ImageTest(unittest.TestCase):

    def arguments(self, *words):
        """Return the parsed arguments of a build."""
        folder = tempfile.mkdtemp(prefix='clickos-image-')
        self.addCleanup(shutil.rmtree, folder)
        with mock.patch.object(sys, 'argv', ['image.py', '--out', folder,
                                             *words]):
            return image.parse_arguments()

    def test_an_image_has_a_file_with_its_groups(self):
        for words, name in (((), 'clickos'),
                            (('--profile', 'core'), 'clickos'),
                            (('--profile', 'full'), 'clickos-full'),
                            (('--profile', 'ids'), 'clickos-ids')):
            args = self.arguments(*words)
            image.write_groups(args)
            groups = (args.out / f'{name}.groups').read_text().strip()
            self.assertEqual(selection.of_profile(args.profile),
                             groups.split(','))

    def test_groups_of_ones_own_have_one_too(self):
        args = self.arguments('--groups', 'standard,device,control')
        image.write_groups(args)
        self.assertEqual('control,device,standard\n',
                         (args.out / 'clickos.groups').read_text())

    def test_an_image_larger_than_its_profile_ends_the_build(self):
        args = self.arguments()
        large = args.out / 'clickos'
        with large.open('wb') as file:
            file.truncate((2048 << 10) + 1)
        image.check_size(large, 'full')
        with self.assertRaisesRegex(SystemExit, 'max_default_image_kib'):
            image.check_size(large, 'core')
