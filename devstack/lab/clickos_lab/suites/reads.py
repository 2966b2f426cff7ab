# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.suites.reads``: handler reads of many clients.

Starts the lab with one server. 20 clients read its handlers in several ways,
some as fast as they can, some at a fixed rate. Next to them one client lists
its ports, which is another call of the same service. A table shows reads a
second, refused requests, and the times of both.

The paced ways hold bounds: no request is refused, and the other call takes at
most twice its time without load. ``make soak PARTS=reads`` runs this.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import statistics
import sys
import threading
import time

import urllib3

from clickos_lab.cloud import sessions
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import processes
from clickos_lab import settings as _settings
from clickos_lab.suites import on_lab
from clickos_lab.suites import progress
from clickos_lab.suites import servers

CLIENTS, WRITERS = 20, 5
#: The aim: reads a second of all clients, and how much slower others may be.
READS_PER_S, SLOWER = 400, 2
_SECONDS = 10
_NAMES = [f'c.{name}' for name in (
    'count', 'byte_count', 'rate', 'byte_rate', 'config', 'class', 'name',
    'handlers')] + ['version', 'list']
_OTHER_PAUSE_S = 0.2
_TICKS_PER_S = os.sysconf('SC_CLK_TCK')
_LOGGED = 3


@dataclasses.dataclass(frozen=True)
class Way:
    """How the clients read.

    :param batch: values of a request
    :param max_age: seconds that a value may be old; None for a new one
    :param per_s: reads a second of all clients; None for as many as they can
    :param writers: clients that write meanwhile
    """

    name: str
    batch: int = 1
    max_age: float | None = None
    per_s: float | None = None
    writers: int = 0


WAYS = (
    Way('single'), Way('single, 5 writers', writers=WRITERS),
    Way('10 in a request', batch=len(_NAMES)),
    Way('single, at most 1 s old', max_age=1),
    Way('400/s, 10 in a request', len(_NAMES), None, READS_PER_S),
    Way('400/s, 10 in a request, at most 1 s old', len(_NAMES), 1,
        READS_PER_S))


def main():
    """Start the lab, measure, stop; return the exit status."""
    state = paths.State()
    return on_lab.run(_lab.Lab(state), lambda: measure(state))


def measure(state):
    """Measure on a lab that is up; return the exit status."""
    settings = _settings.Settings.load(state)
    demo = sessions.demo(settings)
    with servers.running(state, demo) as server:
        load = Load(state, settings, demo, server.id)
        rows = [load.run(way) for way in (Way('no load', per_s=0), *WAYS)]
    _print(rows)
    return int(any(_printed(_faults(rows))))


@dataclasses.dataclass
class Row:
    """Reads, refusals and times of one way."""

    way: Way
    seconds: float
    reads: int
    statuses: collections.Counter
    taken_s: list
    other_s: list
    processors: dict

    @property
    def refused(self):
        """How many requests had another answer than asked for."""
        return sum(count for status, count in self.statuses.items()
                   if status not in (200, 202))


class Load:
    """Clients of one server's handlers."""

    def __init__(self, state, settings, demo, server_id):
        self._processes = processes.Processes(state)
        self._url = settings.url('clickos', f'/v1/servers/{server_id}')
        self._headers = {'X-Auth-Token': demo.auth_token,
                         'Content-Type': 'application/json'}
        self._http = urllib3.PoolManager(
            maxsize=2 * CLIENTS, ca_certs=settings.authority)
        self._errors = collections.Counter()

    def run(self, way, seconds=_SECONDS):
        """Let the clients read in one way; return a Row."""
        over = threading.Event()
        before = self._processor_s()
        began_s = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(2 * CLIENTS) as pool:
            other = pool.submit(self._others, over)
            writes = [pool.submit(self._write, over)
                      for _ in range(way.writers)]
            reads = [pool.submit(self._read, over, way)
                     for _ in range(CLIENTS if way.per_s != 0 else 0)]
            over.wait(seconds)
            over.set()
        took_s = time.monotonic() - began_s
        seen = [each.result() for each in (*reads, *writes)]
        after = self._processor_s()
        done = sum(way.batch for each in reads
                   for status, _ in each.result() if status == 200)
        return Row(
            way, took_s, done,
            collections.Counter(status for each in seen for status, _ in each),
            [taken_s for each in reads for _, taken_s in each.result()],
            other.result(),
            {name: (after[name] - before.get(name, 0)) / took_s
             for name in after})

    def _processor_s(self):
        """Return the processor time of each service."""
        return {name: sum(map(_used_s, self._processes.members(name)))
                for name in self._processes.names()}

    def _read(self, over, way):
        """Read until it is over; return [(status, seconds)]."""
        seen = []
        pause_s = way.batch * CLIENTS / way.per_s if way.per_s else 0
        next_s = time.monotonic()
        while not over.is_set():
            name = _NAMES[len(seen) % len(_NAMES)]
            seen.append(self._timed(*_request(way, name)))
            next_s += pause_s
            over.wait(max(0, next_s - time.monotonic()))
        return seen

    def _write(self, over):
        seen = []
        while not over.is_set():
            seen.append(self._timed('PUT', '/handlers/c.reset',
                                    {'value': ''}))
        return seen

    def _others(self, over):
        """List the ports now and again; return the times."""
        taken_s = []
        while not over.wait(_OTHER_PAUSE_S):
            taken_s.append(self._timed('GET', '/ports')[1])
        return taken_s

    def _timed(self, method, path, body=None):
        """Send a request; return its status and how long it took."""
        began_s = time.monotonic()
        answer = self._http.request(
            method, self._url + path, headers=self._headers, retries=False,
            body=None if body is None else json.dumps(body))
        taken_s = time.monotonic() - began_s
        if answer.status not in (200, 202):
            self._errors[answer.status] += 1
            if self._errors[answer.status] <= _LOGGED:
                print(f'  {method} {path}: {answer.status}'
                      f' {answer.data[:300]}', flush=True)
        return answer.status, taken_s


def _request(way, name):
    """Return method, path and body of a read."""
    if way.batch > 1:
        body = {'names': _NAMES[:way.batch]}
        return 'POST', '/reads', body | (
            {} if way.max_age is None else {'max_age': way.max_age})
    query = '' if way.max_age is None else f'?max_age={way.max_age}'
    return 'GET', f'/handlers/{name}{query}', None


def _used_s(pid):
    """Return the processor time of a process; 0 if it is gone."""
    with contextlib.suppress(OSError):
        stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
        fields = stat.rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
    return 0


def _faults(rows):
    """Yield the bounds that a paced way broke."""
    alone_s = statistics.median(rows[0].other_s)
    for row in rows:
        if not row.way.per_s:
            continue
        name = row.way.name
        if row.refused:
            yield f'{name}: {row.refused} requests refused, expected 0'
        if row.reads < 0.95 * READS_PER_S * row.seconds:
            yield (f'{name}: {row.reads / row.seconds:.0f} reads/s, expected'
                   f' {READS_PER_S}')
        other_s = statistics.median(row.other_s)
        if other_s > SLOWER * alone_s:
            yield (f'{name}: the other call took {1000 * other_s:.0f} ms,'
                   f' expected at most {SLOWER} times {1000 * alone_s:.0f} ms')


def _printed(faults):
    found = list(faults)
    for fault in found:
        print(f'FAULT: {fault}', flush=True)
    return found


def _print(rows):
    print(f'{progress.commit()}, load average {os.getloadavg()[0]:.0f} '
          f'on {os.cpu_count()} cores; {CLIENTS} clients')
    print('| way | reads/s | refused | request p50, p99, ms |'
          ' other call p50, p99, ms | processors |\n|---|---|---|---|---|---|')
    for row in rows:
        busiest = sorted(row.processors.items(), key=lambda pair: -pair[1])
        shown = ', '.join(f'{name} {share:.2f}'
                          for name, share in busiest[:6] if share > 0.01)
        print(f'| {row.way.name} | {row.reads / row.seconds:.0f} '
              f'| {row.refused} of {sum(row.statuses.values())} '
              f'{_by_status(row.statuses)} | {_times(row.taken_s)} '
              f'| {_times(row.other_s)} | {shown} |', flush=True)


def _by_status(statuses):
    return ' '.join(f'{status}:{count}' for status, count in sorted(
        statuses.items()) if status not in (200, 202))


def _times(taken_s):
    if not taken_s:
        return '-'
    ordered = sorted(taken_s)
    p99 = ordered[(len(ordered) * 99 - 1) // 100]
    return f'{1000 * statistics.median(ordered):.0f}, {1000 * p99:.0f}'


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main())
