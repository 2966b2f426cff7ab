# SPDX-License-Identifier: Apache-2.0
"""Each outcome has one word and one text, here and in the documents."""

import pathlib
import unittest

from clickos_client import outcomes

_DOCUMENT = pathlib.Path(__file__).parents[3] / 'docs/interfaces.md'


class OutcomesTest(unittest.TestCase):

    def test_words_and_texts_are_different(self):
        texts = [*outcomes.TEXTS.values(),
                 *(text for _, text in outcomes.CAUSES.values())]
        self.assertEqual(len(texts), len(set(texts)))
        self.assertEqual({outcomes.LOST, outcomes.UNKNOWN}, {
            outcome for outcome, _ in outcomes.CAUSES.values()})

    def test_a_message_has_cause_and_outcome(self):
        self.assertEqual(
            'the guest took a later change first: the guest does not have'
            ' the change and will not get it; send it again',
            outcomes.message('overtaken'))
        self.assertEqual('refused', outcomes.of('handler-error'))
        self.assertEqual('unknown', outcomes.of('no-verdict'))

    def test_the_ledgers_words_become_ours(self):
        self.assertEqual(('handler-error', 'fw: no'),
                         outcomes.of_ledger('handler-error', 'fw: no'))
        self.assertEqual(('guest-died', outcomes.message('guest-died')),
                         outcomes.of_ledger('dead-guest', 'x'))

    def test_the_document_has_each_of_them(self):
        rows = {tuple(cell.strip(' `') for cell in line.split('|')[1:-1])
                for line in _DOCUMENT.read_text().splitlines()
                if line.startswith('| `')}
        for code, (outcome, cause) in outcomes.CAUSES.items():
            self.assertIn((code, outcome, cause), rows)
        for outcome, text in outcomes.TEXTS.items():
            self.assertIn((outcome, text), {row[:2] for row in rows})
