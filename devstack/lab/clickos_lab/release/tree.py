# SPDX-License-Identifier: Apache-2.0
"""The tree that is released: a commit without anything else."""

import shutil

from clickos_lab.checks import tracked
from clickos_lab import errors
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab import version

_FILES_SHOWN = 5


def git(*arguments):
    """Run git on this repository; return what it prints, stripped."""
    return shell.output(['git', '-c', f'safe.directory={paths.REPO}', '-C',
                         paths.REPO, *arguments], timeout_s=300).strip()


def require_releasable():
    """Check that HEAD can be released as it is.

    :raises LabError: with everything that stands against it
    """
    problems = [*_changes(), *version.problems(tracked()), *_tags(),
                *_changelog()]
    if problems:
        raise errors.LabError('no release: ' + '\n'.join(problems))


def _changes():
    listed = git('status', '--porcelain').splitlines()
    if listed:
        names = [line[3:] for line in listed[:_FILES_SHOWN]]
        rest = len(listed) - len(names)
        yield (f'{len(listed)} files differ from HEAD ({", ".join(names)}'
               f'{f" and {rest} more" if rest else ""}); commit or remove '
               'them')


def _tags():
    """Compare HEAD's tags, and the version's tag, where there is one."""
    wanted = f'v{version.number()}'
    here = git('tag', '--points-at', 'HEAD', 'v*').splitlines()
    if here and wanted not in here:
        yield (f'HEAD is tagged {here[0]}, and {version.SOURCE} has '
               f'{version.number()}')
    elif not here and git('tag', '--list', wanted):
        yield (f'{wanted} is a tag of '
               f'{git("rev-parse", "--short", f"{wanted}^{{commit}}")}, and '
               f'HEAD is {git("rev-parse", "--short", "HEAD")}: raise the '
               f'version in {version.SOURCE}')


def _changelog():
    if version.heading()[0] is None:
        yield (f'{version.CHANGELOG}: the first section is "Unreleased"; call '
               f'it "{version.number()} (YYYY-MM-DD)"')


def check_out(folder, commit):
    """Make a folder a worktree of a commit, with no other file in it.

    An earlier worktree stays: files that did not change keep their times, so
    cargo builds only the others again.
    """
    git('worktree', 'prune')
    if (folder / '.git').exists():
        there = ('-c', f'safe.directory={folder}', '-C', folder)
        git(*there, 'checkout', '--quiet', '--force', '--detach',
            git('rev-parse', commit))
        git(*there, 'clean', '-ffdxq')
    else:
        shutil.rmtree(folder, ignore_errors=True)
        git('worktree', 'add', '--quiet', '--detach', folder, commit)


def remove(folder):
    """Remove a worktree, where there is one."""
    shutil.rmtree(folder, ignore_errors=True)
    git('worktree', 'prune')
