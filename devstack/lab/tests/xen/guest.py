# SPDX-License-Identifier: Apache-2.0
"""A ClickOS guest made by ``xl`` and driven by keys written by hand."""

import itertools
import shlex

from clickos_lab.xen import image

#: The most a piece of a configuration or a request may have.
_PIECE_BYTES = 2000
_START_S = 60
_ANSWER_S = 60
#: Prints an answer, one piece a line, as hexadecimal digits.
_PIECES = """\
for n in $(seq 0 1000); do
  until xenstore-exists {path}/$n; do sleep 0.05; done
  piece=$(xenstore-read -R {path}/$n | od -An -v -tx1 | tr -d ' \\n')
  echo $piece
  case $piece in 2e*) break; esac
done"""


#: Waits for the state of a guest that crashed.
_CRASHED = """\
for _ in $(seq 50); do
  xl list {name} | tail -n 1 | grep -qE ' [r-][b-][p-][s-]c[d-] ' && exit 0
  sleep 0.1
done
exit 1"""


def crash(domid):
    """Return a command that gives a PVH guest an exception.

    Its number depends on Xen's release. An NMI wakes the guest. One that is
    just awake can lose the exception, so callers repeat the command. They
    wait in between: a guest that tells of one exception would restart.
    """
    return f'xen-hvmcrash {domid} && xl trigger {domid} nmi'


class Guest:
    """A guest of one test; it ends with the host or :meth:`destroy`.

    :param kind: ``pv`` or ``pvh``
    :param options: more lines of its xl configuration
    """

    def __init__(self, dom0, name, kind, options=''):
        self._dom0 = dom0
        self.name, self._kind, self._options = name, kind, options
        self._config = image.config(kind, name) + options + '\n'
        self._generations = itertools.count(1)
        self._requests = itertools.count(1)
        self.domid = None

    def create(self, watched=True):
        """Create it and wait until its control thread runs.

        :param watched: by a process of xl, which acts when it ends; many of
            them make each creation slower
        """
        create = 'xl create -q' + ('' if watched else ' -e')
        path = f'/root/{self.name}.cfg'
        out = self._script(
            f"cat >{path} <<'END'\n{self._config}END",
            f'{create} {path}', f'd=$(xl domid {self.name})',
            f'lab-wait {_START_S} /local/domain/$d/data/clickos/version '
            "'clickos .*' >/dev/null", 'echo $d')
        self.domid = int(out)
        return self

    def run(self, program):
        """Create it with a program that knows no control protocol."""
        text = image.config(self._kind, self.name, program)
        self._dom0.put_text(f'{text}{self._options}\n',
                            f'/root/{self.name}.cfg')
        self._dom0.check(f'xl create -q -e /root/{self.name}.cfg',
                         timeout_s=_START_S)

    def destroy(self):
        """Destroy it; its console's log stays."""
        self._dom0.check(f'xl destroy {self.name}')

    def crashed(self):
        """Inject an exception that it did not cause; return if it crashed."""
        self._dom0.run(crash(self.domid))
        return self._dom0.run(_CRASHED.format(name=self.name)).status == 0

    def path(self, key=''):
        """Return a path of its control protocol."""
        return f'/local/domain/{self.domid}/data/clickos/{key}'.rstrip('/')

    def put(self, pairs):
        """Write keys, all in one transaction."""
        self._script(self._put(pairs))

    def _put(self, pairs):
        words = [w for key, value in pairs.items()
                 for w in (self.path(key), value)]
        return f'xenstore-write {shlex.join(words)}'

    def get(self, key):
        """Return the value of a key, or None."""
        done = self._dom0.run(f'xenstore-read -R {self.path(key)}')
        return done.out.removesuffix('\n') if done.status == 0 else None

    def wait(self, key, pattern):
        """Wait until a key's value matches; return it."""
        return self._script(self._wait(key, pattern)).removesuffix('\n')

    def _wait(self, key, pattern):
        return f'lab-wait {_ANSWER_S} {self.path(key)} {shlex.quote(pattern)}'

    def install(self, text, rid=0, name='test.click', status='Running'):
        """Install a configuration or an archive; return (state, error)."""
        generation = next(self._generations)
        if isinstance(text, str):
            text = text.encode()
        pieces = {f'{rid}/config/{n}': _escaped(text[at:at + _PIECE_BYTES])
                  for n, at in enumerate(range(0, len(text), _PIECE_BYTES))}
        # In this order the guest looks at it once.
        wish = {**pieces, f'{rid}/config_name': name,
                f'{rid}/status': status,
                f'{rid}/generation': str(generation)}
        out = self._script(
            f'xenstore-rm {self.path(f"{rid}/config")} 2>/dev/null || true',
            self._put(wish),
            self._wait(f'{rid}/state', f'[A-Z][a-z]+ {generation}'),
            f'xenstore-read -R {self.path(f"{rid}/error")} 2>/dev/null'
            ' || true')
        state, _, error = out.removesuffix('\n').partition('\n')
        return state.partition(' ')[0], error

    def request(self, text, rid=0):
        """Ask as a program does; return (code, data)."""
        seq = next(self._requests)
        asked, answered = (f'{rid}/{word}/{seq}'
                           for word in ('request', 'response'))
        out = self._script(
            self._put({f'{asked}/0': f'.{text}'}),
            self._wait(f'{answered}/0', r'\..*'),
            f'xenstore-rm {self.path(asked)} {self.path(answered)}')
        code, _, data = out.removesuffix('\n')[1:].partition(' ')
        return int(code), data

    def read_handler(self, name):
        """Return what a read handler gives; it has to succeed."""
        code, data = self.request(f'read {name}')
        if code != 200:
            raise AssertionError(f'{name}: {code} {data}')
        return data

    def read_file(self, name, rid=0):
        """Return the bytes of a file in its memory."""
        whole = b''
        while piece := self._read_piece(rid, len(whole), name):
            whole += piece
        return whole

    def _read_piece(self, rid, offset, name):
        seq = next(self._requests)
        asked, answered = (self.path(f'{rid}/{word}/{seq}')
                           for word in ('request', 'response'))
        out = self._script(
            f'xenstore-write {asked}/0 ".read file {offset} {name}"',
            _PIECES.format(path=answered),
            f'xenstore-rm {answered} {asked}')
        pieces = map(bytes.fromhex, out.split())
        answer = b''.join(piece[1:].removesuffix(b'\n') for piece in pieces)
        code, _, data = answer.partition(b' ')
        if code != b'200':
            raise AssertionError(f'{name}: {answer}')
        return data

    def console(self):
        """Return what its console has printed."""
        return self._dom0.check(f'cat /var/log/xen/guest-{self.name}.log')

    def _script(self, *lines):
        """Run commands; they may be longer than a command line can be."""
        text = '\n'.join(('set -e', *lines, ''))
        result = self._dom0.run('cat >/tmp/script; bash /tmp/script',
                                timeout_s=_ANSWER_S + 60, stdin=text.encode())
        if result.status != 0:
            raise AssertionError(f'{self.name}: {result.err or result.out}')
        return result.out


def _escaped(data):
    """Return bytes as xenstore-write wants them."""
    return ''.join(chr(b) if 32 <= b < 127 and b != ord('\\')
                   else f'\\x{b:02x}' for b in data)
