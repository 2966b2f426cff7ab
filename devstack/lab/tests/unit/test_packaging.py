# SPDX-License-Identifier: Apache-2.0
"""The files behind packages and Zuul's jobs fit each other."""

import configparser
import unittest
from unittest import mock

import yaml

from clickos_lab import accounts
from clickos_lab.config import options
from clickos_lab import debian
from clickos_lab import debs
from clickos_lab import paths

_UNITS = {'valed': 'valed', 'cosmosd': 'cosmosd', 'agent': 'clickos-agent'}


def _unit(package):
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read(debs.SOURCES / package / 'root/usr/lib/systemd/system'
                / f'{_UNITS[package]}.service')
    return parser['Service']


class ControlTest(unittest.TestCase):

    def test_dependencies_are_those_of_the_debian_that_builds(self):
        values = {'VERSION': '1', 'DIVERTED': '', **debs.of_debian()}
        for name in (*debs.NAMES, debs.XEN):
            text = debs._filled(debs.SOURCES / name / 'control', values)
            self.assertNotRegex(text, '@[A-Z_]+@', name)
        values.update(XEN='4.20', PYTHON='3.13', NEXT_PYTHON='3.14')
        for name, wanted in (
                ('cosmosd', 'libxenmisc4.20'),
                ('agent', 'python3 (>= 3.13), python3 (<< 3.14)')):
            self.assertIn(wanted, debs._filled(
                debs.SOURCES / name / 'control', values))

    def test_a_later_debian_has_later_packages(self):
        for number, wanted in (('12', ''), ('13', '+deb13')):
            with mock.patch.object(debian, 'here', return_value=(
                    debian.RELEASES[number])):
                self.assertEqual(wanted, debs._suffix())


class UnitTest(unittest.TestCase):

    def test_guests_outlive_cosmosd(self):
        self.assertEqual('process', _unit('cosmosd')['KillMode'])

    def test_the_switch_has_the_labs_capabilities(self):
        wanted = {f'CAP_{name.upper()}'
                  for name in accounts.ALL['valed'].capabilities}
        for option in ('AmbientCapabilities', 'CapabilityBoundingSet'):
            self.assertEqual(wanted, set(_unit('valed')[option].split()))

    def test_the_switch_may_write_its_captures(self):
        text = options.file('valed.toml', **debs._VALUES)
        folders = [f'/var/lib/{name}'
                   for name in _unit('valed')['StateDirectory'].split()]
        for option, folder in zip(('state_dir', 'capture_dir'), folders):
            self.assertIn(f'{option} = "{folder}"\n', text)

    def test_a_purge_removes_the_folders_of_the_services(self):
        for package in _UNITS:
            folder = _unit(package)['StateDirectory'].split()[0]
            self.assertIn(f'rm -rf /var/lib/{folder}\n', (
                debs.SOURCES / package / 'postrm').read_text())
            self.assertEqual('0700', _unit(package)['StateDirectoryMode'])

    def test_the_agent_has_no_capability(self):
        self.assertEqual('', _unit('agent')['CapabilityBoundingSet'])

    def test_only_cosmosd_runs_as_root(self):
        self.assertNotIn('User', _unit('cosmosd'))
        made = (debs.SOURCES / 'common/root/usr/lib/sysusers.d/clickos.conf'
                ).read_text()
        for package in ('valed', 'agent'):
            self.assertIn(f'u {_unit(package)["User"]} ', made)

    def test_each_service_reads_its_packages_file(self):
        for package, unit in _UNITS.items():
            name = _unit(package)['ExecStart'].rsplit('/', 1)[1]
            self.assertIn(f'file=/etc/clickos/{name}\n',
                          (debs.SOURCES / package / 'postinst').read_text())

    def test_an_upgrade_keeps_the_switch(self):
        for package, unit in _UNITS.items():
            text = (debs.SOURCES / package / 'postinst').read_text()
            self.assertEqual(package != 'valed',
                             f'try-restart {unit}' in text, package)


class ZuulTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        items = yaml.safe_load((paths.REPO / '.zuul.yaml').read_text())
        self.jobs = {item['job']['name']: item['job'] for item in items
                     if 'job' in item}
        (self.project,) = [item['project'] for item in items
                           if 'project' in item]

    def test_the_projects_jobs_are_there(self):
        for pipeline in self.project.values():
            self.assertLessEqual(set(pipeline['jobs']), set(self.jobs))

    def test_playbooks_are_there(self):
        for job in self.jobs.values():
            for key in ('run', 'pre-run', 'post-run'):
                if key in job:
                    self.assertTrue((paths.REPO / job[key]).exists(), job)

    def test_targets_are_the_makefiles(self):
        text = (paths.REPO / 'Makefile').read_text()
        targets = [job['vars']['make_target'].split()[0]
                   for job in self.jobs.values()
                   if job.get('parent') == 'clickos-make']
        self.assertGreater(len(targets), 1)
        for target in targets:
            self.assertRegex(text, rf'(?m)^[a-z ]*\b{target}\b.*:')
