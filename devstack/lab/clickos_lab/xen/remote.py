# SPDX-License-Identifier: Apache-2.0
"""Commands and files in dom0, all over one SSH connection."""

import dataclasses
import shlex
import subprocess

from clickos_lab import errors
from clickos_lab.xen import keys

#: The connection's socket, relative to the host's folder: its whole path
#: may be longer than a socket's path can be.
_SOCKET = 'ssh'
#: What ssh itself returns when it fails, and timeout(1) when it kills.
_SSH_FAILED, _TIMED_OUT = 255, 143
#: For a connection beyond a script's own time limit.
_SLACK_S = 30


@dataclasses.dataclass(frozen=True)
class Result:
    """How a script ended."""

    status: int
    out: str
    err: str


class Remote:
    """dom0 of one host.

    :param host: its :class:`places.HostPlaces`
    """

    def __init__(self, host):
        self._host = host

    def master(self):
        """Return the command line of the connection the others share."""
        return self.command('-M', '-N')

    def connected(self):
        """Return whether the connection is up."""
        return (self._host.root / _SOCKET).exists()

    def command(self, *options):
        """Return an ssh command line, to be run in the host's folder."""
        return ['ssh', '-F', 'ssh_config', '-S', _SOCKET, *options,
                keys.ALIAS]

    def run(self, script, timeout_s=60, stdin=b''):
        """Run a shell script to its end, however it ends.

        :raises LabError: if it takes longer or dom0 does not answer
        """
        done = self._ssh(script, timeout_s, stdin)
        return Result(done.returncode, done.stdout.decode(errors='replace'),
                      done.stderr.decode(errors='replace'))

    def check(self, script, timeout_s=60):
        """Run a script that has to succeed; return its standard output.

        :raises LabError: with its standard error if it fails
        """
        result = self.run(script, timeout_s)
        if result.status != 0:
            raise errors.LabError(
                f'dom0: {_head(script)}: exit status {result.status}: '
                f'{(result.err or result.out).strip()[-2000:]}')
        return result.out

    def put(self, path, name, mode=0o644):
        """Copy a file into dom0."""
        self._write(path.read_bytes(), name, mode)

    def put_text(self, text, name, mode=0o644):
        """Write a file in dom0."""
        self._write(text.encode(), name, mode)

    def _write(self, content, name, mode):
        new = shlex.quote(f'{name}.new')
        script = f'mkdir -p {shlex.quote(_folder(name))} && cat >{new} && ' \
            f'chmod {mode:o} {new} && mv {new} {shlex.quote(name)}'
        self._copy(script, content)

    def get(self, name):
        """Return the content of a file of dom0."""
        return self._copy(f'cat {shlex.quote(name)}')

    def get_tree(self, name, folder):
        """Copy a folder of dom0 into a folder that exists."""
        content = self._copy(f'tar -c -C {shlex.quote(name)} .')
        subprocess.run(['tar', '-x', '--no-same-owner', '-C', folder],
                       input=content, check=True, timeout=60)

    def pack(self, folder, names):
        """Return an archive of files and folders in a folder of dom0."""
        names = ' '.join(map(shlex.quote, names))
        return self._copy(f'tar -c -C {shlex.quote(folder)} {names}')

    def unpack(self, content, folder):
        """Unpack an archive in a folder of dom0."""
        self._copy(f'tar -x -C {shlex.quote(folder)}', content)

    def _copy(self, script, stdin=b'', timeout_s=120):
        done = self._ssh(script, timeout_s, stdin)
        if done.returncode != 0:
            raise errors.LabError(f'dom0: {_head(script)}: '
                                  + done.stderr.decode(errors='replace'))
        return done.stdout

    def _ssh(self, script, timeout_s, stdin):
        # Not the last command of its shell, which would become timeout(1):
        # killed by a signal, it would look like a failure of ssh. By its
        # path, because busybox prefers a shell of its own.
        limited = f'timeout -k 2 {timeout_s} /bin/bash -c ' \
            f'{shlex.quote(script)}; exit $?'
        try:
            done = subprocess.run(
                [*self.command(), limited], input=stdin, capture_output=True,
                cwd=self._host.root, timeout=timeout_s + _SLACK_S)
        except subprocess.TimeoutExpired:
            raise errors.LabError(f'dom0 does not answer: {_head(script)}')
        if done.returncode == _SSH_FAILED:
            raise errors.LabError(f'dom0: {_head(script)}: ssh: '
                                  + done.stderr.decode(errors='replace'))
        if done.returncode == _TIMED_OUT:
            raise errors.LabError(
                f'dom0: {_head(script)}: not done after {timeout_s} s')
        return done


def _folder(name):
    return name.rpartition('/')[0] or '/'


def _head(script):
    return script.strip().partition('\n')[0][:60]
