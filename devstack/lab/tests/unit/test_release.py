# SPDX-License-Identifier: Apache-2.0
"""One version everywhere, and the trees that make no release."""

import os
import re
import subprocess
from unittest import mock

from clickos_lab import checks
from clickos_lab import debs
from clickos_lab import errors
from clickos_lab import paths
from clickos_lab.release import artifacts
from clickos_lab.release import tree
from clickos_lab import version
from tests.packages import stream
from tests.unit import base

_PLACES = ('Cargo.toml', 'Cargo.lock', 'setup.cfg', 'CHANGELOG.md')


class _Copy(base.TestCase):
    """A folder with the files that state the version."""

    def copy(self):
        for name in _PLACES:
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text((paths.REPO / name).read_text())

    def change(self, name, pattern, text):
        path = self.folder / name
        changed, count = re.subn(pattern, text, path.read_text(), count=1)
        self.assertEqual(1, count, name)
        path.write_text(changed)


class OneVersionTest(_Copy):

    def test_everything_of_this_tree_has_it(self):
        self.assertEqual([], version.problems(checks.tracked()))

    def test_each_place_that_differs_is_named(self):
        wanted = version.number()
        for changed, pattern in (
                ('Cargo.lock', rf'(name = "valed"\nversion = "){wanted}'),
                ('setup.cfg', rf'(version = ){wanted}')):
            self.copy()
            self.change(changed, pattern, r'\g<1>7.7.7')
            (found,) = version.problems([], self.folder)
            self.assertTrue(found.startswith(changed), found)
            self.assertIn(f'version 7.7.7; Cargo.toml has {wanted}', found)

    def test_a_new_version_is_missing_everywhere_else(self):
        self.copy()
        self.change('Cargo.toml', rf'(\nversion = "){version.number()}',
                    r'\g<1>7.7.7')
        found = ' '.join(version.problems([], self.folder))
        for name in _PLACES[1:-1]:
            self.assertIn(name, found)

    def test_the_section_of_another_version_is_named(self):
        self.copy()
        self.change('CHANGELOG.md', r'(?m)^## .*', '## 7.7.7 (2026-01-01)')
        (found,) = version.problems([], self.folder)
        self.assertIn('CHANGELOG.md: version 7.7.7', found)
        for section in ('## 7.7.7', '## next', '## 7.7.7 (soon)'):
            self.change('CHANGELOG.md', r'(?m)^## .*', section)
            with self.assertRaisesRegex(errors.LabError, 'first section'):
                version.problems([], self.folder)

    def test_work_after_a_release_has_a_higher_version(self):
        self.copy()
        for first, count in (('Unreleased', 1),
                             (f'{version.number()} (2026-01-01)', 0)):
            (self.folder / 'CHANGELOG.md').write_text(
                f'# Changes\n## {first}\n'
                f'## {version.number()} (2026-01-01)\n')
            self.assertEqual(count, len(version.problems([], self.folder)))

    def test_a_version_for_pbr_is_not_written_down(self):
        self.copy()
        name = 'PBR_' + 'VERSION'
        for text, is_good in (
                (f"{{'{name}': '7.7.7'}}", False), (f'{name}=7.7.7 x', False),
                (f"{{'{name}': number()}}", True), (f'{name}="$(x)"', True)):
            (self.folder / 'x').write_text(text)
            found = version.problems(['x'], self.folder)
            self.assertEqual([] if is_good else [
                f'x:1: version 7.7.7; Cargo.toml has {version.number()}'],
                found)

    def test_a_version_has_three_numbers(self):
        self.copy()
        self.change('Cargo.toml', rf'(\nversion = "){version.number()}',
                    r'\g<1>1.0-rc1')
        with self.assertRaisesRegex(errors.LabError, 'got 1.0-rc1'):
            version.number(self.folder)

    def test_devstack_reads_it(self):
        done = subprocess.run(
            ['bash', '-c', '. devstack/lib/clickos && _clickos_version'],
            cwd=paths.REPO, env={'CLICKOS_DIR': str(paths.REPO)},
            capture_output=True, text=True, check=True)
        self.assertEqual(version.number(), done.stdout.strip())

    def test_a_build_comes_before_its_release(self):
        self.assertRegex(debs.before_release(),
                         rf'^{re.escape(version.number())}~[1-9]\d*$')


class TreeTest(_Copy):
    """A repository with these files, which could be released."""

    def setUp(self):
        super().setUp()
        self.tag = f'v{version.number()}'
        # The state folder of the test must not be in the repository.
        self.folder = self.folder / 'repository'
        self.copy()
        self.change('CHANGELOG.md', r'(?m)^## .*',
                    f'## {version.number()} (2026-01-02)')
        self.git('init', '--quiet')
        self.commit()
        patch = mock.patch.object(paths, 'REPO', self.folder)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_clean_tree_is_released_with_or_without_its_tag(self):
        tree.require_releasable()
        self.git('tag', self.tag)
        tree.require_releasable()

    def test_changes_are_refused(self):
        (self.folder / 'new').write_text('')
        self.assert_refused(r'1 files differ from HEAD \(new\); commit')
        self.change('CHANGELOG.md', 'Changes', 'News')
        for number in range(5):
            (self.folder / f'new{number}').write_text('')
        self.assert_refused('7 files differ .* and 2 more')

    def test_the_tag_of_another_commit_is_refused(self):
        self.git('tag', '-a', '-m', 'a release', self.tag)
        self.commit()
        self.assert_refused(f'{self.tag} is a tag of .*raise the version')

    def test_another_tag_of_the_commit_is_refused(self):
        self.git('tag', 'v7.7.7')
        self.assert_refused('HEAD is tagged v7.7.7, and Cargo.toml has')

    def test_changes_without_a_version_are_refused(self):
        self.change('CHANGELOG.md', r'(?m)^## .*', '## Unreleased')
        self.commit()
        self.assert_refused('the first section is "Unreleased"')

    def test_two_versions_are_refused(self):
        self.change('setup.cfg', r'version = .*', 'version = 7.7.7')
        self.commit()
        self.assert_refused('setup.cfg: version 7.7.7')

    def test_a_worktree_has_the_commit_alone(self):
        (self.folder / 'new').write_text('')
        folder = self.state.root / 'tree'
        tree.check_out(folder, 'HEAD')
        self.assertEqual({'.git', *os.listdir(self.folder)} - {'new'},
                         set(os.listdir(folder)))
        made_ns = (folder / 'Cargo.toml').stat().st_mtime_ns
        (folder / 'stray').write_text('')
        (folder / 'setup.cfg').write_text('changed')
        self.commit()
        tree.check_out(folder, 'HEAD')
        self.assertEqual(set(os.listdir(self.folder)),
                         set(os.listdir(folder)))
        self.assertIn('version', (folder / 'setup.cfg').read_text())
        self.assertEqual(made_ns, (folder / 'Cargo.toml').stat().st_mtime_ns)
        tree.remove(folder)
        self.assertEqual(1, len(tree.git('worktree', 'list').splitlines()))

    def assert_refused(self, pattern):
        with self.assertRaisesRegex(errors.LabError, pattern):
            tree.require_releasable()

    def git(self, *arguments):
        subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b',
                        '-C', self.folder, *arguments], check=True)

    def commit(self):
        self.git('add', '.')
        self.git('commit', '--quiet', '--allow-empty', '-m', 'x: change')


class ArtifactsTest(base.TestCase):

    def test_an_archive_depends_on_contents_alone(self):
        for name in ('one', 'two'):
            place = self.folder / name / 'html'
            place.mkdir(parents=True)
            (place / 'index.html').write_text('page')
            artifacts._archive(place.parent, self.folder / f'{name}.tar.gz',
                               'site', 1)
            place.chmod(0o700)
        one, two = ((self.folder / f'{name}.tar.gz').read_bytes()
                    for name in ('one', 'two'))
        self.assertEqual(one, two)

    def test_a_second_build_that_differs_is_named(self):
        places = self.folder / 'one', self.folder / 'two'
        for place in places:
            place.mkdir()
            (place / 'same').write_text('same')
            (place / 'other').write_text(place.name)
        with self.assertRaisesRegex(errors.LabError, 'again: other; compare'):
            artifacts._compare(*places)


class StreamTest(base.TestCase):

    def test_lost_pings_and_silence(self):
        for answered, since, lost in (
                ([1, 2, 3], 0, (0, 0)), ([2, 3], 0, (1, 0.01)),
                ([1, 2, 5, 6, 8], 0, (3, 0.02)), ([1, 9, 10], 9, (0, 0)),
                ([1, 2, 2, 3], 0, (0, 0)), ([], 0, (0, 0))):
            self.assertEqual(lost, stream.lost(answered, since), answered)
