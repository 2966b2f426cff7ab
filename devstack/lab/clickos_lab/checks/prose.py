# SPDX-License-Identifier: Apache-2.0
"""Prose keeps the house rules: CONTRIBUTING.md, "Prose".

Documents have no misspelled words (codespell), and lines of documents and
comments that changed since :data:`SINCE` have no calques: phrases that are
correct word by word and that no native engineer writes. Commit subjects are
held to ``area: imperative summary`` in 72 characters.

``python -m clickos_lab.checks.prose [PATH ...]`` lists the calques in all
lines of files below the paths; without paths it checks all of the above.
"""

import re
import subprocess
import sys

from clickos_lab import checks
from clickos_lab.checks import prose_text
from clickos_lab import paths
from clickos_lab import shell

MAX_SUBJECT = 72
#: Commits after this one follow the rule for subjects.
SUBJECTS_SINCE = '594cc5c'
#: Lines changed after this commit have no calques.
SINCE = '73f6f893477740cd96be175e9ca553c3c5130903'

#: {pattern: what a native engineer writes}
CALQUES = {re.compile(rf'\b(?:{pattern})\b', re.IGNORECASE): better
           for pattern, better in (
    (r'anew', 'again, from scratch'),
    (r'(?<![-#/])beside(?!-)', 'next to, in addition to, while'),
    (r'goes on|going on|went on', 'continues, resumes'),
    (r'in the place of', 'instead of, on behalf of'),
    (r'in vain', 'without result, fails'),
    (r'is none|are none', 'is not one, does not exist'),
    (r'(?:is|are|was|were) told', 'is notified, is given'),
    (r'nobody|no-one', 'no other thread, no caller'),
    (r'so many|so often', 'that many, every 10 s'),
    (r'the mover|a mover', 'the migration client'),
    (r'the wish|a wish', 'the request'),
    (r'thereof|whoever|whatsoever', 'the noun'))}
#: Texts of others, and of this check.
_EXEMPT = re.compile(
    r'^LICENSE|/conformance/|/golden/|/fixtures?/|^\.git|'
    r'/checks/prose\.py$|/test_checks\.py$')
_DOCUMENTS = re.compile(r'^docs/.*\.md$|README\.md$|^[A-Z]+\.md$')
_SUBJECT = re.compile(r'[a-z0-9][\w./, -]*: \S.*[^.]')
_FILE = re.compile(r'^\+\+\+ b/(.*)')
_HUNK = re.compile(r'^@@ -\S+ \+(\d+)(?:,(\d+))? @@')


def calques(name, lines=None):
    """Return the calques of a file as texts: place, phrase, what to write.

    :param lines: their numbers; None for all
    """
    text = (paths.REPO / name).read_text(errors='replace')
    return [f'{name}:{number}: {found[0]!r}: write {better}'
            for number, line in prose_text.lines(name, text)
            if lines is None or number in lines
            for pattern, better in CALQUES.items()
            if (found := pattern.search(line))]


def changed_lines(diff):
    """Return {file: numbers of its new lines} of a diff without context."""
    changed, numbers = {}, set()
    for line in diff.splitlines():
        if found := _FILE.match(line):
            numbers = changed.setdefault(found[1], set())
        elif found := _HUNK.match(line):
            first, count = int(found[1]), int(found[2] or 1)
            numbers.update(range(first, first + count))
    return changed


def subject_fault(subject):
    """Return what is wrong with a commit's subject, or None."""
    if len(subject) > MAX_SUBJECT:
        return f'{len(subject)} characters, the limit is {MAX_SUBJECT}'
    if not _SUBJECT.fullmatch(subject):
        return 'is not "area: imperative summary" without a full stop'
    return None


def _commit_faults():
    """Return what is wrong with the subjects of new commits."""
    log = _git('log', '--no-merges', '--format=%h %s',
               f'{SUBJECTS_SINCE}..HEAD')
    rows = (line.split(' ', 1) for line in log.splitlines())
    return [f'{commit}: {fault}: {subject}' for commit, subject in rows
            if (fault := subject_fault(subject))]


def _git(*arguments):
    return shell.output(['git', '-c', f'safe.directory={paths.REPO}', '-c',
                         'core.quotePath=false', '-C', paths.REPO,
                         *arguments])


def misspelled(names):
    """Return the lines of codespell about files."""
    done = subprocess.run(
        [sys.executable, '-m', 'codespell_lib', *names], cwd=paths.REPO,
        capture_output=True, text=True)
    return done.stdout.splitlines() + done.stderr.splitlines()


def main(wanted):
    """List what is wrong; 0 when all is well."""
    names = [n for n in checks.tracked() if not _EXEMPT.search(n)
             and (not wanted or n.startswith(tuple(wanted)))]
    if wanted:
        for place in wanted:
            if not any(n.startswith(place) for n in names):
                raise SystemExit(f'{place}: no file that is checked, expected '
                                 'the begin of a path in the repository')
        return checks.report([found for name in names
                              for found in calques(name)], len(names), 'files')
    changed = changed_lines(_git('diff', '-U0', '--no-ext-diff', SINCE))
    found = [calque for name in names if name in changed
             for calque in calques(name, changed[name])]
    documents = [name for name in names if _DOCUMENTS.search(name)]
    return checks.report([*_commit_faults(), *misspelled(documents), *found],
                         len(documents) + len(changed), 'files')


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
