# SPDX-License-Identifier: Apache-2.0
"""Which Xen a host gets, and what it is built of."""

import contextlib
import io
import re
import subprocess
from unittest import mock

from clickos_lab import __main__ as main
from clickos_lab import apt
from clickos_lab import debs
from clickos_lab import errors
from clickos_lab import shell
from clickos_lab.xen import background
from clickos_lab.xen import netback
from clickos_lab.xen import packages
from clickos_lab.xen import patched
from clickos_lab.xen import toolstack
from clickos_lab.xen import variants
from clickos_lab.xen import xen_paths
from tests.unit import base


class PatchedCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.state.log.mkdir(parents=True, exist_ok=True)
        self.places = xen_paths.XenPaths(self.state)
        self.places.create()

    def replace(self, where, name):
        """Put a mock instead of a function until the test ends."""
        patch = mock.patch.object(where, name, autospec=True)
        self.addCleanup(patch.stop)
        return patch.start()


class VariantTest(PatchedCase):

    def setUp(self):
        super().setUp()
        self.replace(packages, 'ensure')
        self.prepared = self.replace(patched, 'prepare')

    def variant(self, wanted=variants.PATCHED):
        """Return what a host gets, and what was printed."""
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            found = background.variant(self.state, self.places, wanted)
        return found, told.getvalue()

    def test_the_patched_one_is_built_and_the_stock_one_needs_nothing(self):
        self.assertEqual((variants.PATCHED, ''), self.variant())
        self.assertEqual((variants.STOCK, ''), self.variant(variants.STOCK))
        self.assertEqual(1, self.prepared.call_count)

    def test_without_sources_it_is_the_stock_one_and_a_message_says_so(self):
        self.prepared.side_effect = patched.SourcesMissing('xen: none here')
        found, told = self.variant()
        self.assertEqual(variants.STOCK, found)
        self.assertIn('without our patches', told)
        self.assertIn('xen: none here', told)

    def test_a_build_that_fails_is_no_missing_source(self):
        self.prepared.side_effect = errors.LabError('make failed')
        self.assertRaises(errors.LabError, self.variant)

    def test_what_was_chosen_last_is_known_to_the_next_process(self):
        self.assertEqual(variants.STOCK, variants.chosen(self.places))
        variants.choose(self.places, variants.PATCHED)
        again = xen_paths.XenPaths(self.state)
        self.assertEqual(variants.PATCHED, variants.chosen(again))


class SourcesTest(PatchedCase):
    """What apt has not differs from what does not build."""

    def test_a_source_package_that_apt_has_not(self):
        self.replace(apt, 'ensure')
        self.replace(shell, 'output').return_value = ''
        self.replace(shell, 'run').side_effect = errors.LabError('no source')
        self.assertRaises(patched.SourcesMissing, patched.source,
                          self.state, self.places)

    def test_a_package_of_the_build_that_apt_has_not(self):
        self.replace(netback, 'packages').return_value = ()
        self.replace(apt, 'ensure').side_effect = errors.LabError('no ocaml')
        self.assertRaises(patched.SourcesMissing, patched.install,
                          self.state, self.places)


class BackgroundTest(PatchedCase):

    def test_only_a_patched_host_that_is_not_built_builds(self):
        installed = self.replace(background, '_can_be_installed')
        installed.return_value = False
        built = self.replace(patched, 'is_built')
        for wanted, is_built, count in (
                (None, False, 0), (variants.STOCK, False, 0),
                (variants.PATCHED, True, 0), (variants.PATCHED, False, 1)):
            built.return_value = is_built
            installed.reset_mock()
            with background.started(self.state, wanted):
                pass
            self.assertEqual(count, installed.call_count, wanted)

    def test_who_waits_for_the_rest_is_told(self):
        self.replace(background, '_can_be_installed').return_value = True
        self.replace(patched, 'is_built').return_value = False
        with subprocess.Popen(['sleep', '0.2']) as process, \
                mock.patch.object(subprocess, 'Popen', autospec=True,
                                  return_value=process), \
                contextlib.redirect_stdout(io.StringIO()) as told:
            with background.started(self.state, variants.PATCHED):
                pass
        self.assertIn("the rest of Xen's tools: done", told.getvalue())
        self.assertEqual(0, process.returncode)


class HostsTest(PatchedCase):

    def test_a_host_is_patched_unless_it_is_asked_to_be_stock(self):
        self.assertEqual({'xen': variants.PATCHED,
                          'xen-stock': variants.STOCK}, variants.OF_HOSTS)
        for command in ('up', 'demo'):
            self.assertLessEqual(set(variants.OF_HOSTS),
                                 set(main._HOSTS[command]))

    def test_each_libxl_has_a_cosmosd_and_both_share_the_rest(self):
        for program in toolstack.PROGRAMS:
            found = {toolstack.built(self.state, program, variant)
                     for variant in variants.ALL}
            self.assertEqual(2 if program == 'cosmosd' else 1, len(found))

    def test_the_list_of_patches_is_the_series(self):
        self.assertEqual(
            sorted(p.name for p in patched.SERIES.glob('*.patch')),
            patched.names())
        self.assertEqual(
            sorted(p.name for p in netback.SERIES.glob('*netback*.patch')),
            netback.names())


class PackageTest(PatchedCase):
    """The package takes the place of files of others, and gives it back."""

    def test_each_script_knows_the_files(self):
        root = patched.folder(self.places)
        for name in (f'{patched.PROGRAMS_FOLDER}/xl', patched.PATCHES,
                     f'{patched.SCRIPTS_FOLDER}/vale-port'):
            path = root / name.lstrip('/')
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text('made')
        held = debs._xen(self.state)
        self.assertEqual(
            ('/usr/lib/xen-4.17/bin/xl', '/usr/sbin/cosmosd'), held.diverted)
        self.assertEqual({patched.PATCHES: 'made'}, held.texts)
        values = {'VERSION': '1', 'DIVERTED': ' '.join(held.diverted),
                  **debs.of_debian()}
        for script in ('preinst', 'postrm'):
            text = debs._filled(debs.SOURCES / debs.XEN / script, values)
            self.assertIn(f"files='{' '.join(held.diverted)}'", text)
        control = debs._filled(debs.SOURCES / debs.XEN / 'control', values)
        self.assertIn('clickos-cosmosd (= 1)', control)
        self.assertIsNone(re.search('@[A-Z_]+@', control + text))
