# SPDX-License-Identifier: Apache-2.0
"""Flow logs of a guest: their lines, and other text."""

import unittest

from clickos_client import flow_log

TEXT = ('1500 2 6 10.0.0.1 5000 10.0.0.2 81 deny tcp dst port 81\n'
        '2500 1 17 2001:db8::1 5 2001:db8::2 53 no flow\n'
        '3500 7 1 10.0.0.1 8 10.0.0.2 0 deny icmp\n'
        '4500 1 47 10.0.0.1 0 10.0.0.2 0 no rule matches\n')


class FlowLogTest(unittest.TestCase):

    def test_lines(self):
        found = flow_log.parse('a/fw.log', TEXT)
        self.assertEqual(flow_log.Dropped(
            'a/fw', 1500, 2, 'tcp', '10.0.0.1:5000', '10.0.0.2:81',
            'deny tcp dst port 81'), found[0])
        self.assertEqual(
            [('udp', '[2001:db8::1]:5', '[2001:db8::2]:53'),
             ('icmp', '10.0.0.1', '10.0.0.2 type 8 code 0'),
             ('gre', '10.0.0.1', '10.0.0.2')],
            [(e.protocol, e.source, e.destination) for e in found[1:]])
        self.assertEqual([], flow_log.parse('fw.log', ''))

    def test_the_newest_of_all_logs_come_first(self):
        logs = [flow_log.parse('fw.log', TEXT),
                flow_log.parse('flows.log', '2000 1 6 ::1 1 ::2 2 no flow')]
        self.assertEqual([1500, 2000, 2500, 3500, 4500],
                         [each.age_ms for each in flow_log.merged(logs)])

    def test_other_text_is_refused(self):
        line = TEXT.splitlines()[0]
        for wrong in ('what', line.replace('10.0.0.1', '<b>'),
                      line.replace(' 6 ', ' '), '-' + line, line[:-21],
                      line + 'x' * 400, '\n'.join([line] * 129)):
            with self.assertRaises(ValueError, msg=wrong):
                flow_log.parse('fw.log', wrong)

    def test_handlers_are_chosen_by_their_last_part(self):
        self.assertEqual(['a/fw.log', 'flows.log'], flow_log.handlers(
            ['flows.log', 'fw.hits', 'log_lost', 'a/fw.log', 'x.reset_log']))
        self.assertEqual(flow_log.HANDLERS_MAX, len(flow_log.handlers(
            f'fw{n}.log' for n in range(100))))
