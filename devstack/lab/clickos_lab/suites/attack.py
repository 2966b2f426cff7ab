# SPDX-License-Identifier: Apache-2.0
"""A hostile guest, a hostile client and a hostile tenant on one lab.

``make soak PARTS=attack`` runs them side by side for an hour, or for
``ATTACK_MINUTES``. An attacker stops at its first fault:

- The guest sends frames that ADR 0009 forbids; one of them reaches its victim.
  It also writes anything into its rings, and valed does not answer.
- The client holds slow connections and sends wrong lines to the daemons; an
  honest request meanwhile has no answer.
- The tenant asks Tacker for what a member must not get, and gets it.
- A second tenant shares a network with the first one and owns nothing. It
  sends ids, names and addresses of the first one to every API, and one works.

Meanwhile two neighbors of another segment ping each other without a loss and
see no foreign frame. Afterwards every service is the same process, has not
grown, and answers.
"""

import concurrent.futures
import os
import pathlib
import re
import resource
import socket
import subprocess
import sys
import time

from clickos_client import pings

from clickos_lab import bounds
from clickos_lab.host import endpoint
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import settings as _settings
from clickos_lab.suites import on_lab
from clickos_lab.suites import slow
from clickos_lab.suites import tempest_run

_MINUTES = 60
_ATTACKED, _OTHER = 4001, 4002
#: name: segment, MAC, address
_MACHINES = {
    'attacker': (_ATTACKED, '02:00:00:00:00:01', '10.7.0.1/24'),
    'victim': (_ATTACKED, '02:00:00:00:00:02', '10.7.0.2/24'),
    'neighbor-a': (_OTHER, '02:00:00:0a:00:03', '10.99.1.3/24'),
    'neighbor-b': (_OTHER, '02:00:00:0a:00:04', '10.99.1.4/24')}
#: Makes and judges frames of port ``plain``, which the attacker has.
_FRAMES = paths.REPO / 'vale/valed/tests/it/differential/frames.py'
_SENDER = pathlib.Path(__file__).with_name('attack_frames.py')
_RINGS = pathlib.Path(__file__).with_name('attack_ring.py')
_RINGS_S = 10
_FRAMES_A_ROUND = 20000
_ALLOWED = {'attacker': ['2001:db8::1/128']}
_PINGS_A_SECOND = 5
#: Frames at a neighbor: each ping is two, and ARP now and then.
_FRAMES_A_PING = 3
#: Tests of what a tenant must not get: of its own cloud, and of the second
#: tenant, which owns nothing.
_NEGATIVE = r'api\.(test_tacker_limits|test_bad_packages)'
_STRANGER = r'api\.test_stranger'
#: They need a Xen host.
_NOT_HERE = 'for_xen'
_CONNECTIONS = 500
_HOSTILE_LINES = (
    b'[' * 1000000 + b'\n', b'{"v":1,"id":1,"verb":"create","args":{}}\n',
    b'{"v":1,"id":1,"verb":"hello","args":' + b'{"a":' * 20000 + b'\n',
    b'\xff\xfe\x00\n', b'{"v":1' + b' ' * 5000000, b'"' * 70000 + b'\n')


def main():
    """Attack for the time asked for; 0 when everything held."""
    seconds = 60 * float(os.environ.get('ATTACK_MINUTES', _MINUTES))
    # 1,000 held connections have two ends here.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 16384), most))
    state = paths.State()
    lab = _lab.Lab(state)
    return on_lab.run(lab, lambda: _attacked(state, lab, seconds))


def _attacked(state, lab, seconds):
    machines = {name: endpoint.Endpoint(state, name) for name in _MACHINES}
    for name, machine in machines.items():
        machine.add(*_MACHINES[name], allow=_ALLOWED.get(name, ()))
    before = _services(lab)
    until_s = time.monotonic() + seconds
    attacks = {'guest': lambda n: _guest(state, machines, n),
               'client': lambda _: _client(state),
               'tenant': lambda _: _tenant(state)}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        watch = pool.submit(_ping, machines['neighbor-a'], seconds)
        runs = {name: pool.submit(_repeat, attack, until_s)
                for name, attack in attacks.items()}
        rounds, faults = [], _printed(watch.result())
        for name, run in runs.items():
            count, found = run.result()
            rounds.append(f'{count} of the {name}')
            faults += found
    faults += _printed([*_compare(before, _services(lab)), *_answers(state)])
    sent = _sent(machines['attacker'])
    print(f'seen: rounds: {", ".join(rounds)}; {sent} forbidden frames')
    return 1 if faults else 0


def _repeat(attack, until_s):
    """Attack until the time or a fault; return rounds and faults."""
    count, faults = 0, []
    while not faults and (time.monotonic() < until_s or not count):
        faults = _printed(attack(count))
        count += 1
    return count, faults


def _printed(faults):
    """Print faults as they come; return them."""
    seen = []
    for fault in faults:
        print(f'FAULT: {fault}', flush=True)
        seen.append(fault)
    return seen


def _guest(state, machines, seed):
    """Send forbidden frames from a port, then attack rings; yield faults."""
    victim = machines['victim']
    before = _received(victim)
    frames = machines['attacker'].run(
        sys.executable, _SENDER, _FRAMES, seed, _FRAMES_A_ROUND,
        timeout_s=600)
    rings = subprocess.run(
        [sys.executable, _RINGS, state.run / 'valed/valed.sock',
         str(_ATTACKED), str(seed), str(_RINGS_S)],
        capture_output=True, text=True, timeout=600)
    for name, done in (('frames', frames), ('rings', rings)):
        if done.returncode:
            yield f'seed {seed}, {name}: {done.stderr[-500:]}'
    arrived = _received(victim) - before
    if arrived:
        yield f'seed {seed}: {arrived} forbidden frames reached the victim'


def _client(state):
    """Hold slow connections, and send lines that no daemon can use."""
    settings = _settings.Settings.load(state)
    for name, kind, _, asked, good in slow.attack(
            settings, _CONNECTIONS, 2):
        if good < asked:
            yield f'{name}: slow {kind}: {good} of {asked} answers'
    for name in ('cosmosd', 'valed'):
        for line in _HOSTILE_LINES:
            _send(state.run / name / f'{name}.sock', line)


def _send(path, line):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        try:
            client.connect(str(path))
            client.sendall(line)
            client.recv(4096)
        except OSError:
            # The daemon has hung up, as it should on most of them.
            pass


def _tenant(state):
    """Ask for what a member, or a stranger, must not get."""
    if tempest_run.run(state, ['--regex', f'{_NEGATIVE}|{_STRANGER}',
                               '--exclude-regex', _NOT_HERE]):
        yield 'a tenant got what it asked for'


def _ping(machine, seconds):
    """Ping the other neighbor all the time; return what went wrong."""
    return list(_ping_faults(machine, seconds))


def _ping_faults(machine, seconds):
    count = max(10, int(seconds * _PINGS_A_SECOND))
    before = _received(machine)
    address = _MACHINES['neighbor-b'][2].partition('/')[0]
    done = machine.run(
        *pings.command(address, count, 1 / _PINGS_A_SECOND),
        timeout_s=2 * (seconds + pings.PATIENCE_S))
    if lost := pings.judge(done.stdout, count).lost:
        yield (f'ping in another segment: no answer to {lost[:10]}: '
               f'{done.stdout[-200:]}')
    frames = _received(machine) - before
    if frames > _FRAMES_A_PING * count:
        yield f'{frames} frames reached a neighbor that got {count} pings'


def _received(machine):
    done = machine.run('cat', '/sys/class/net/eth0/statistics/rx_packets')
    return int(done.stdout)


def _sent(machine):
    return sum(count for name, count in machine.counters().items()
               if name.startswith('dropped_'))


def _services(lab):
    """Return pid and resident MiB of each service."""
    return {name: (pid := lab.processes.find(name).pid, _resident_mib(pid))
            for name in lab.processes.names()}


def _resident_mib(pid):
    text = pathlib.Path(f'/proc/{pid}/status').read_text()
    return int(re.search(r'VmRSS:\s+(\d+) kB', text)[1]) // 1024


def _compare(before, after):
    for name, (pid, mib) in before.items():
        if name not in after or after[name][0] != pid:
            yield f'{name} ended'
        elif name in ('valed', 'cosmosd'):
            try:
                bounds.hold('max_attack_growth_mib', after[name][1] - mib)
            except AssertionError as error:
                yield f'{name}: {error}'


def _answers(state):
    settings = _settings.Settings.load(state)
    for name in ('keystone', 'clickos', 'tacker', 'nova', 'glance'):
        if slow.served(settings.ports[name], 10) < 10:
            yield f'{name} does not answer each request'
    for command in (['cosmos', '--socket', state.run / 'cosmosd/cosmosd.sock',
                     'list'],
                    ['vale-ctl', '--socket', state.run / 'valed/valed.sock',
                     'ports']):
        done = subprocess.run([state.binary(command[0]), *command[1:]],
                              capture_output=True)
        if done.returncode:
            yield f'{command[0]}: {done.stderr!r}'


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main())
