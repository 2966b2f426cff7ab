# SPDX-License-Identifier: Apache-2.0
"""Prose keeps the house rules: CONTRIBUTING.md, "Prose".

Counted are, by area, sentences of more than 25 words, sentences that begin
with a clause instead of an actor, and phrases without an actor. The counts
stand in ``prose_debt.toml`` and may only fall. Commit subjects are held to
``area: imperative summary`` in 72 characters.

``python -m clickos_lab.checks.prose [PATH ...]`` lists what is wrong in the
files below the paths; without paths it compares all counts.
"""

import concurrent.futures
import dataclasses
import re
import sys
import tomllib

from clickos_lab import checks
from clickos_lab.checks import prose_text
from clickos_lab import paths
from clickos_lab import shell

MAX_WORDS = 25
MAX_SUBJECT = 72
DEBT = paths.REPO / 'devstack/lab/prose_debt.toml'
#: Commits after this one follow the rule for subjects.
SINCE = '594cc5c'

#: Texts that Click's own tests compare, and what others have written.
_EXEMPT = re.compile(
    r'^LICENSE|/conformance/|/golden/|/fixtures?/|^\.git|prose_debt.toml$')
_SENTENCE_END = re.compile(r'(?<=[.!?])["\')]*\s+(?=["\'(]*[A-Z0-9`])')
_WORD = re.compile(r'\w')
_OPENINGS = re.compile(
    r'(What|Whether|Who|Whoever|Whatever|Nobody|Thereof|Which|'
    r'Of (?!course)|That (?!is |was |way |makes |means ))')
_PHRASES = re.compile(
    r'\b(nobody|whoever|thereof|(?:is|are|was|were) (?:not )?(?:said|told|'
    r'asked)|as told|so many|in vain|of it)\b', re.IGNORECASE)
_SUBJECT = re.compile(r'[a-z0-9][\w./, -]*: \S.*[^.]')


@dataclasses.dataclass(frozen=True)
class Fault:
    """A sentence that breaks a rule."""

    place: str
    rule: str
    sentence: str

    def __str__(self):
        return f'{self.place}: {self.rule}: {self.sentence[:90]}'


def sentences(text):
    """Split a paragraph into sentences."""
    return [s for s in _SENTENCE_END.split(' '.join(text.split())) if s]


def rule_broken(sentence):
    """Return the rule a sentence breaks, or None."""
    words = [w for w in sentence.split() if _WORD.search(w)]
    if len(words) > MAX_WORDS:
        return f'{len(words)} words, the limit is {MAX_WORDS}'
    if _OPENINGS.match(sentence) and not sentence.endswith('?'):
        return 'begins with a clause, not with an actor'
    found = _PHRASES.search(sentence)
    return f'"{found[0]}" hides the actor' if found else None


def faults(name):
    """Return what is wrong in a file."""
    text = (paths.REPO / name).read_text(errors='replace')
    return [Fault(f'{name}:{paragraph.line}', rule, sentence)
            for paragraph in prose_text.paragraphs(name, text)
            for sentence in sentences(paragraph.text)
            if (rule := rule_broken(sentence))]


def subject_fault(subject):
    """Return what is wrong with a commit's subject, or None."""
    if len(subject) > MAX_SUBJECT:
        return f'{len(subject)} characters, the limit is {MAX_SUBJECT}'
    if not _SUBJECT.fullmatch(subject):
        return 'is not "area: imperative summary" without a full stop'
    return None


def commit_faults():
    """Return what is wrong with the subjects of new commits."""
    log = shell.output(
        ['git', '-c', f'safe.directory={paths.REPO}', '-C', paths.REPO,
         'log', '--no-merges', '--format=%h %s', f'{SINCE}..HEAD'])
    rows = (line.split(' ', 1) for line in log.splitlines())
    return [Fault(commit, rule, subject) for commit, subject in rows
            if (rule := subject_fault(subject))]


def area(name, areas):
    """Return the area of a file: the longest prefix named, or 'rest'."""
    if name.endswith('README.md'):
        return 'READMEs'
    fits = [prefix for prefix in areas if name.startswith(f'{prefix}/')]
    return max(fits, key=len, default='rest')


def main(wanted):
    """List faults, or compare counts; 0 when all is well."""
    names = [n for n in checks.tracked() if not _EXEMPT.search(n)
             and (not wanted or n.startswith(tuple(wanted)))]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        found = list(pool.map(faults, names, chunksize=16))
    if wanted:
        listed = [fault for some in found for fault in some]
        return checks.report(listed, len(names), 'files')
    return checks.report(_compared(names, found), len(names), 'files')


def _compared(names, found):
    """Return a line for each area with more faults than its debt."""
    debt = tomllib.loads(DEBT.read_text())
    counts = dict.fromkeys(debt, 0)
    for name, some in zip(names, found):
        counts[area(name, debt)] += len(some)
    counts['commits'] = len(commit_faults())
    for key, count in counts.items():
        print(f'{key}: {count} of {debt[key]}')
    return [_advice(key, counts[key], debt[key]) for key in counts
            if counts[key] > debt[key]]


def _advice(key, count, limit):
    if key == 'commits':
        return '\n'.join(str(fault) for fault in commit_faults())
    return (f'{key}: {count} sentences break the rules of prose, the limit is '
            f'{limit}; python -m clickos_lab.checks.prose PATH lists them')


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
