# SPDX-License-Identifier: Apache-2.0
"""Commands of documents are found, run, and judged."""

import contextlib
import io
import os
import pathlib
import signal

from clickos_lab.documents import blocks
from clickos_lab.documents import console
from clickos_lab.documents import lists
from clickos_lab.documents import report
from clickos_lab.documents import rules
from clickos_lab import paths
from clickos_lab.suites import documents
from tests.unit import base

_PAGE = """\
# A page
```
make demo KEEP=1     # starts it
```
```text
a picture
```
- In a list:
  ```bash
  # a comment alone
  cat > f <<'END'
  text
  END
  for i in 1 2; do
      echo $i \\
          more
  done
  ```
"""
_PRINTED = """\
[ 90.0 s] dashboard: http://127.0.0.1:1/ (user demo)
Everything is still running. As the tenant:
  . /x/openrc-demo
  openstack clickos handler list --vnf 0ff1
In the namespaces:
  ip netns exec demo7-client ping -c 3 10.9.8.7
make lab-down stops everything; make clean-demo removes it too.

[ 91.0 s] all expectations were met
"""


class BlocksTest(base.TestCase):

    def test_blocks_of_a_page(self):
        first, second = blocks.of_page('p.md', _PAGE)
        self.assertEqual('p.md:2: make demo KEEP=1', str(first))
        self.assertEqual(('make demo KEEP=1     # starts it',),
                         first.statements)
        self.assertEqual(
            ("cat > f <<'END'\ntext\nEND",
             'for i in 1 2; do\n    echo $i \\\n        more\ndone'),
            second.statements)
        self.assertEqual("cat > f <<'END'", second.name)

    def test_what_a_demonstration_prints(self):
        usage = blocks.of_usage(_PRINTED)
        self.assertEqual(
            ('. /x/openrc-demo', 'openstack clickos handler list --vnf 0ff1',
             'ip netns exec demo7-client ping -c 3 10.9.8.7'),
            usage.statements)
        self.assertEqual(
            {'VNF_ID': '0ff1', 'CLIENT': 'demo7-client',
             'SERVER_IP': '10.9.8.7', 'HOST': 'clickos-lab',
             'admin-openrc': '/s/openrc-admin',
             '/var/lib/clickos/valed': '/s/data/valed'},
            rules.names(usage, paths.State(pathlib.Path('/s'))))

    def test_no_usage_is_a_fault(self):
        for text in ('', 'all expectations were met\n',
                     _PRINTED.partition('In the')[0]):
            with self.assertRaises(ValueError):
                blocks.of_usage(text)


class RulesTest(base.TestCase):

    def test_make(self):
        for line, short, why in (
                ('make demo KEEP=1', False, 'is this run'),
                ('make test SUITES=pep8', False, 'is this run'),
                ('make clean-demo', False, 'ends the host'),
                ('make click  # minutes', True, 'in make integration'),
                ('make click', False, None), ('make try', True, None),
                ('make lab', True, None), ('echo make demo', True, None)):
            self.assertEqual(why, rules.not_run(line, short), line)

    def test_names_stand_for_things_of_the_demonstration(self):
        block = blocks.Block('p', 1, (
            'read --vnf VNF_ID x; echo $VNF_ID VNF_ID_2 VNF_ID=3',))
        self.assertEqual(
            ('read --vnf 7 x; echo $VNF_ID VNF_ID_2 VNF_ID=3',),
            rules.named(block, {'VNF_ID': '7'}))

    def test_paths_stand_for_those_of_the_demonstration(self):
        block = blocks.Block('p', 1, ('ls /var/lib/x/y.pcap . rc-admin a',))
        self.assertEqual(
            ('ls /s/y.pcap . rc-admin a',),
            rules.named(block, {'/var/lib/x': '/s', 'rc': 'no'}))

    def test_long_builds_have_more_time(self):
        self.assertEqual((600, 1800), (rules.limit_s('make try'),
                                       rules.limit_s('make click  # long')))


class ConsoleTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.log = self.folder / 'log'
        # As in a run that a shell has started in the background.
        self.addCleanup(signal.signal, signal.SIGINT,
                        signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.console = self.enterContext(console.Console(
            self.folder, dict(os.environ), self.log))

    def test_commands_of_a_page_share_a_shell(self):
        self.assertIsNone(self.console.run('A=$(echo 5); mkdir b; cd b'))
        self.assertIsNone(self.console.run('[ $A = 5 ] && [ -d ../b ]'))

    def test_a_failure_is_named_and_the_shell_lasts(self):
        self.assertEqual('exit status 3',
                         self.console.run('(echo why >&2; exit 3)'))
        self.assertEqual('exit status 2', self.console.run('echo $('))
        self.assertIsNone(self.console.run('true'))
        self.assertIn('why\n', self.log.read_text())

    def test_the_end_of_the_shell_is_a_failure(self):
        self.assertEqual('exit status 4', self.console.run('exit 4'))
        self.assertEqual('the shell has ended', self.console.run('true'))

    def test_a_command_cannot_take_the_next_ones(self):
        self.assertIsNone(self.console.run('cat; cat <&9 2>/dev/null || :'))
        self.assertIsNone(self.console.run('true'))

    def test_ctrl_c_ends_what_runs_for_ever(self):
        console._RUNS_S, before = 1, console._RUNS_S
        self.addCleanup(setattr, console, '_RUNS_S', before)
        self.assertIsNone(self.console.run('sleep 99   # until Ctrl-C'))
        self.assertEqual('ended by itself with exit status 0',
                         self.console.run('true   # until Ctrl-C'))
        self.assertIsNone(self.console.run('true'))


class ListsTest(base.TestCase):

    def test_entries(self):
        read = lists.load('[left_out."p.md"]\na = "hardware"\n'
                          '[failures."p.md"]\nb = "no such name"\n')
        self.assertEqual({('p.md', 'a'): 'hardware'}, read.left_out)
        self.assertEqual({('p.md', 'b'): 'no such name'}, read.failures)
        known = blocks.Block('p.md', 1, ('a',))
        self.assertEqual(['p.md: b: no such block'],
                         lists.stale(read, [known], ['p.md']))
        self.assertEqual([], lists.stale(read, [], ['q.md']))

    def test_another_reason_is_refused(self):
        with self.assertRaisesRegex(ValueError, 'the reasons are'):
            lists.load('[left_out."p.md"]\na = "slow"\n')

    def test_the_lists_of_the_tree_name_blocks_that_exist(self):
        read, found = lists.load(), []
        for page in documents.pages():
            text = (documents.paths.REPO / page).read_text()
            found += blocks.of_page(page, text)
        self.assertEqual([], lists.stale(read, found, documents.pages()))
        names = [(block.page, block.name) for block in found]
        self.assertEqual(sorted(set(names)), sorted(names))


class JudgeTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.run_ = documents.Run.__new__(documents.Run)
        self.run_._lists = lists.Lists({}, {('p', 'known'): 'a reason'})
        self.run_._report = report.Report()
        self.run_._log = self.folder / 'log'
        self.run_._log.write_text('')
        self.printed = self.enterContext(
            contextlib.redirect_stdout(io.StringIO()))

    def judge(self, name, why):
        block = blocks.Block('p', 1, (name,))
        self.run_._judge(block, ('p', name), why, 1, 0)
        return bool(self.run_._report.faults)

    def test_a_good_block_passes(self):
        self.assertFalse(self.judge('other', None))
        self.assertEqual(0, self.run_._report.finish())
        for line in ('1 blocks passed', '0 blocks failed as known',
                     '0 blocks left out (second host)',
                     '0 blocks left out (hardware)',
                     '0 blocks left out (ends the host)', '0 faults'):
            self.assertIn(line, self.printed.getvalue().splitlines())

    def test_a_known_failure_may_fail(self):
        self.assertFalse(self.judge('known', 'exit status 1'))

    def test_a_known_failure_may_not_pass(self):
        self.assertTrue(self.judge('known', None))

    def test_another_may_not_fail(self):
        self.assertTrue(self.judge('other', 'exit status 1'))
        self.assertEqual(1, self.run_._report.finish())

    def test_nothing_that_passed_is_a_failure(self):
        self.assertEqual(1, self.run_._report.finish())
