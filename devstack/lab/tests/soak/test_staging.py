# SPDX-License-Identifier: Apache-2.0
"""Pages of a frontend that a patched netback keeps mapped."""

from clickos_lab import shell
from clickos_lab.xen import linux
from clickos_lab.xen import netback
from tests.soak import test_linux
from tests.xen import base

_COUNTERS, _CONTROL = '/root/guest-net', '/root/netfront-ctrl'
#: Lines that no test may leave in the kernel's log.
_FAULTS = "WARNING|BUG|Oops|page state|Unmap fail"


class _Staging(test_linux.LinuxTest):
    """The guest's netfront offers its pages.

    The inherited tests send packets and a stream, also over a save and a
    restore.
    """

    @classmethod
    def netfront(cls):
        return netback.build_front(cls.state, cls.places)

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        netback.build(cls.state, cls.places)
        netback.add(cls.places, contents)
        contents.add(linux.program(cls.places), _COUNTERS, 0o755)

    def setUp(self):
        self.dom0.check('dmesg -c >/dev/null')
        super().setUp()
        self.addCleanup(self._expect_no_fault)

    def _expect_no_fault(self):
        self.assertEqual('', self.dom0.check(
            f"dmesg | grep -E '{_FAULTS}' || true"))

    def _staged(self):
        """Return the copies from and to pages that stay mapped."""
        domid = self.dom0.check('xl domid linux').strip()
        lines = self.dom0.check(
            f'{_COUNTERS} counters vif{domid}.0').splitlines()
        counters = dict(line.split() for line in lines)
        return int(counters['tx_staged']), int(counters['rx_staged'])


class StagingTest(_Staging):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dom0.check(f'rmmod xen_netback && insmod {netback.MODULE}')

    def test_packets_go_through_pages_that_stay_mapped(self):
        before = self._staged()
        self.ping('a', test_linux.STOCK_IP, test_linux.PINGS, 0.002,
                  '-s 1400')
        for old, new in zip(before, self._staged()):
            self.assertGreaterEqual(new - old, test_linux.PINGS)

    def test_a_restored_guest_offers_its_pages_again(self):
        self.test_a_stream_outlives_save_and_restore()
        self.test_packets_go_through_pages_that_stay_mapped()

    def test_a_guest_that_dies_in_mid_traffic_leaves_nothing(self):
        domid = self.dom0.check('xl domid linux').strip()
        self._start_stream_to('a', test_linux.STOCK_IP)
        self.dom0.check('xl destroy linux', timeout_s=120)
        # A domain whose pages somebody maps stays in Xen's list.
        self.dom0.check(f'for i in $(seq 300); do xl list {domid} '
                        '>/dev/null 2>&1 || exit 0; sleep 0.1; done; exit 1',
                        timeout_s=60)
        # Only a module that nothing uses can be removed.
        self.dom0.check(f'rmmod xen_netback && insmod {netback.MODULE}')


class StockNetbackTest(_Staging):
    """netback has no such pages: the frontend continues as before."""


_BACK, _FRONT = ('/local/domain/0/backend/vif/0/9',
                 '/local/domain/0/device/vif/9')
#: netback's device, and where it writes an error.
_DEVICE, _ERROR = 'vif0.9', '/local/domain/0/error/backend/vif/0/9/error'
#: Domain 0 is both ends. It has no driver that would take the frontend. The
#: test says that the hotplug script is done. The function `ask` gives the
#: program a line, and waits for its answer.
_CONNECT = f"""
set -e
trap 'rm -f /run/requests /run/answers; kill %1 2>/dev/null || true
      xenstore-rm {_BACK}; xenstore-rm {_FRONT}
      xenstore-rm {_ERROR} 2>/dev/null || true' EXIT
mkfifo /run/requests
{_CONTROL} 0 {{pages}} </run/requests >/run/answers 2>&1 &
exec 3>/run/requests
until [ -s /run/answers ]; do sleep 0.1; done
read -r tx rx control data_port port </run/answers
ask() {{{{
    local lines
    lines=$(wc -l </run/answers)
    echo "$1" >&3
    until [ "$(wc -l </run/answers)" -gt "$lines" ]; do
        kill -0 %1
        sleep 0.1
    done
}}}}
xenstore-write {_FRONT}/backend {_BACK} {_FRONT}/backend-id 0 \\
    {_FRONT}/handle 9 {_FRONT}/mac 00:16:3e:00:00:09 {_FRONT}/state 1
xenstore-write {_BACK}/frontend {_FRONT} {_BACK}/frontend-id 0 \\
    {_BACK}/handle 9 {_BACK}/mac 00:16:3e:00:00:09 {_BACK}/online 1 \\
    {_BACK}/script /bin/true {_BACK}/hotplug-status connected {_BACK}/state 1
lab-wait 30 {_BACK}/state 2 >/dev/null
xenstore-write {_FRONT}/tx-ring-ref "$tx" {_FRONT}/rx-ring-ref "$rx" \\
    {_FRONT}/event-channel "$data_port" {_FRONT}/request-rx-copy 1 \\
    {_FRONT}/ctrl-ring-ref "$control" {_FRONT}/event-channel-ctrl "$port" \\
    {_FRONT}/feature-sg 1 {_FRONT}/xdp-headroom {{headroom}} {_FRONT}/state 4
{{steps}}
exec 3>&-
wait
xenstore-write {_FRONT}/state 6
lab-wait 30 {_BACK}/state '[56]' >/dev/null
tail -n +2 /run/answers
"""
_CONNECTED = f'lab-wait 30 {_BACK}/state 4 >/dev/null'
#: The device carries frames of up to 64 KiB.
_UP = f"""
ip link set {_DEVICE} mtu 65517 up
until [ "$(cat /sys/class/net/{_DEVICE}/operstate)" = up ]; do sleep 0.1; done
"""
_REFUSED = (f"lab-wait 30 {_ERROR} '.* xdp-headroom {{headroom}}, .*' "
            '>/dev/null')
_SIZE, _ADD, _REMOVE = 8, 9, 10
_DONE, _UNSUPPORTED, _WRONG = 0, 1, 2
#: The status of an entry that netback does not write.
_KEPT = 0xffff
_MOST = 512
_READ_ONLY = ':1'


class _Frontend(base.XenTest):
    """A program is the frontend, and domain 0 both ends."""

    @classmethod
    def add_files(cls, contents):
        netback.build(cls.state, cls.places)
        netback.add(cls.places, contents)
        contents.add(_build_control(cls.state, cls.places), _CONTROL, 0o755)
        linux.build(cls.state, cls.places)
        contents.add(linux.program(cls.places), _COUNTERS, 0o755)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dom0.check(f'rmmod xen_netback && insmod {netback.MODULE}')

    def _run(self, steps, pages, headroom=0, timeout_s=180):
        """Return the lines of the program's answers.

        Neither a fault in the kernel's log nor a module in use may remain.
        """
        self.dom0.check('dmesg -c >/dev/null')
        lines = self.dom0.check(_CONNECT.format(
            pages=pages, headroom=headroom, steps=steps),
            timeout_s=timeout_s).splitlines()
        self.assertEqual('', self.dom0.check(
            f"dmesg | grep -E '{_FAULTS}' || true"))
        # Only a module that nothing uses can be removed.
        self.dom0.check(f'rmmod xen_netback && insmod {netback.MODULE}')
        return lines


class HostileControlTest(_Frontend):
    """Requests of the control ring that netback must refuse."""

    def _answers(self, *requests, pages=2):
        """Return status, data and statuses of the entries of requests."""
        wanted = '\n'.join(requests)
        lines = self._run(f"{_CONNECTED}\ncat >&3 <<'END'\n{wanted}\nEND",
                          pages)
        self.assertEqual(len(requests), len(lines), lines[:3])
        return [tuple(map(int, line.split())) for line in lines]

    def test_wrong_requests_change_nothing(self):
        wrong = (
            f'{_SIZE} 1 0 0', f'{_SIZE} 0xffffffff 0 0',
            f'{_ADD} 0 list 0', f'{_ADD} 0 list 513 p0',
            f'{_ADD} 0 list 0xffffffff p0', f'{_ADD} 1 list 1 p0',
            f'{_ADD} 0xffffffff list 1 p0', f'{_ADD} 0 0xffffffff 1 p0',
            f'{_ADD} 0 99999 1 p0', f'{_ADD} 0 list 2 p0 0xffffffff',
            f'{_ADD} 0 list 2 p0 99999', f'{_ADD} 0 list 2 p0 p0',
            f'{_ADD} 0 list 1 p0:2', f'{_ADD} 0 list 1 p0:0xffff',
            f'{_REMOVE} 0 list 0', f'{_REMOVE} 1 list 1 p0',
            f'{_REMOVE} 0 99999 1 p0')
        answers = self._answers(
            *wrong, '77 0 0 0', f'{_SIZE} 0 0 0',
            f'{_REMOVE} 0 list 2 p0 99999', f'{_ADD} 0 list 1 p0',
            f'{_ADD} 0 list 2 p1 p0', f'{_REMOVE} 0 list 3 p1 p0 p0')
        for request, answer in zip(wrong, answers):
            self.assertEqual((_WRONG, 0), answer[:2], request)
        self.assertEqual(
            [(_UNSUPPORTED, 0), (_DONE, _MOST), (_DONE, 0, _WRONG, _WRONG),
             (_DONE, 0, _KEPT), (_WRONG, 0, _KEPT, _KEPT),
             (_DONE, 1, _WRONG, _DONE, _WRONG)], answers[len(wrong):])

    def test_a_queue_keeps_so_many_pages_only(self):
        pages = [f'p{n}{_READ_ONLY if n % 2 else ""}'
                 for n in range(_MOST + 1)]
        answers = self._answers(
            f'{_ADD} 0 list {_MOST} {" ".join(pages[:_MOST])}',
            f'{_ADD} 0 list 1 {pages[_MOST]}',
            f'{_REMOVE} 0 list 1 p0', f'{_ADD} 0 list 1 {pages[_MOST]}',
            pages=_MOST + 1)
        self.assertEqual([(_DONE, 0), (_WRONG, 0), (_DONE, 1), (_DONE, 0)],
                         [answer[:2] for answer in answers])

    def test_pages_that_come_and_go_without_end(self):
        pages = ' '.join(f'p{n}' for n in range(64))
        requests = (f'{_ADD} 0 list 64 {pages}',
                    f'{_REMOVE} 0 list 64 {pages}') * 50
        for number, answer in enumerate(self._answers(*requests, pages=64)):
            self.assertEqual((_DONE, number % 2 * 64), answer[:2], number)


#: Pages of a ring of received packets, all of which stay mapped.
_RING = 256
_MAPPED = f"{_ADD} 0 list {_RING} {' '.join(f'p{n}' for n in range(_RING))}"
#: Every length around one and two pages, and some up to the longest frame.
_SHORT, _LONG = (14, 8300, 1), (8301, 65531, 997)
_MOST_HEADROOM = 2048


def _count(lengths):
    return len(range(lengths[0], lengths[1] + 1, lengths[2]))


def _ask(line):
    return f"ask '{line}'"


def _frames(word, lengths):
    return _ask(f'{word} {_DEVICE} {" ".join(map(str, lengths))}')


class HostileHeadroomTest(_Frontend):
    """The offset of a received slot is the frontend's."""

    #: The last ones do not fit into the type of netback's field.
    REFUSED = (_MOST_HEADROOM + 1, 4095, 4096, 4097, 6000, 8191, 8192, 16384,
               28672, 32766, 32767, 32768, 65535, 65536, 65792, 4294967295)

    def _receive(self, headroom, *steps, mapped=True):
        """Connect, take frames of each length, and go on with steps."""
        first = [_CONNECTED, _UP, _ask(_MAPPED) if mapped else '',
                 f"echo 'headroom {headroom}' >&3", 'echo slots >&3',
                 _frames('frames', _SHORT), _frames('frames', _LONG)]
        lines = self._run('\n'.join([*first, *steps]), _RING, headroom,
                          timeout_s=1800)
        if mapped:
            self.assertEqual(['0', '0'], lines.pop(0).split()[:2])
        self.assertEqual([_count(_SHORT), _count(_LONG)],
                         [int(line) for line in lines[:2]])
        return lines[2:]

    def test_headroom_that_leaves_room(self):
        for headroom in (0, 256, _MOST_HEADROOM):
            with self.subTest(headroom):
                [line] = self._receive(
                    headroom, f'{_COUNTERS} counters {_DEVICE} '
                    "| grep '^rx_staged ' >>/run/answers")
                self.assertGreaterEqual(int(line.split()[1]), _count(_SHORT))

    def test_headroom_without_pages_that_stay_mapped(self):
        self._receive(_MOST_HEADROOM, mapped=False)

    def test_headroom_that_leaves_no_room(self):
        """netback refuses it at the connection, and no frame arrives."""
        for headroom in self.REFUSED:
            with self.subTest(headroom):
                lines = self._run('\n'.join((
                    _REFUSED.format(headroom=headroom),
                    f'ip link set {_DEVICE} up', 'echo slots >&3',
                    _frames('lost', (14, 1514, 1)))), _RING, headroom)
                self.assertEqual([1501], [int(line) for line in lines])

    def test_headroom_that_changes_later(self):
        """netback keeps the headroom of before when it refuses a new one."""
        again = [_frames('frames', _SHORT)]
        for headroom in self.REFUSED:
            again += [f'xenstore-rm {_ERROR} 2>/dev/null || true',
                      f'xenstore-write {_FRONT}/xdp-headroom {headroom} '
                      f'{_FRONT}/state 7', _REFUSED.format(headroom=headroom),
                      _frames('frames', (14, 5000, 331)),
                      f'xenstore-write {_FRONT}/state 4']
        lines = self._receive(256, *again)
        self.assertEqual(
            [_count(_SHORT)] + [_count((14, 5000, 331))] * len(self.REFUSED),
            [int(line) for line in lines])

    def test_headroom_that_grows(self):
        lines = self._receive(
            0, f'xenstore-write {_FRONT}/xdp-headroom {_MOST_HEADROOM} '
            f'{_FRONT}/state 7', f'lab-wait 30 {_BACK}/state 8 >/dev/null',
            f"echo 'headroom {_MOST_HEADROOM}' >&3",
            _frames('frames', _SHORT))
        self.assertEqual([_count(_SHORT)], [int(line) for line in lines])


def _build_control(state, places):
    program = places.build / 'netfront-ctrl'
    shell.run(['gcc', '-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror',
               '-static', '-s', linux.FOLDER / 'netfront_ctrl.c', '-o',
               program], state.log / 'netfront.log')
    return program
