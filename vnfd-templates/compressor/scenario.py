# SPDX-License-Identifier: Apache-2.0
"""The compressor with zlib and the kernel as its other end."""

import sys

from clickos_lab.vnf import ipcomp_peer

REMOTE = '10.8.0.1'
PROPERTIES = {'remote': '10.8.0.0/24'}


def check(case, vnf):
    _start_peer(vnf)
    capture = vnf.capture('right', f'ip proto 108 and dst {REMOTE}', 1)
    case.assertEqual(5, vnf.ping('left', REMOTE, 5, '-s', 1000))
    case.assertIn('IPComp', vnf.wait(capture))
    case.assertEqual(5, vnf.count('compress.packets'))
    case.assertEqual(5, vnf.count('decompress.packets'))
    case.assertEqual(5 * 1008, vnf.count('decompress.bytes_out'))
    case.assertLess(vnf.count('compress.bytes_out'), 5 * 1008 / 2)
    _check_download(case, vnf)
    vnf.swap()
    case.assertLess(5, vnf.count('decompress.packets'))
    case.assertEqual(5, vnf.ping('left', REMOTE))
    _check_plain(case, vnf)
    _check_broken(case, vnf)


def _start_peer(vnf):
    vnf.start('right', sys.executable, ipcomp_peer.__file__, f'{REMOTE}/24')
    vnf.until(lambda: REMOTE in vnf.run('right', 'ip', '-4', 'address'),
              'the peer makes no TUN device')
    vnf.run('right', 'ip', 'route', 'add', f'{vnf.address("left")}/32', 'dev',
            'packed')


def _check_download(case, vnf):
    """A page that is larger than some packets arrives byte by byte."""
    vnf.serve_http('right', 80)
    page = vnf.run('left', 'curl', '-sf', f'http://{REMOTE}/')
    local = vnf.run('right', 'curl', '-sf', f'http://{REMOTE}/')
    case.assertEqual(local, page)


def _check_plain(case, vnf):
    """Other networks and short payloads pass as they are."""
    before = vnf.count('compress.packets')
    vnf.control.write('compress.threshold', '65515')
    case.assertEqual(5, vnf.ping('left', REMOTE, 5, '-s', 1000))
    case.assertEqual(before, vnf.count('compress.packets'))


def _check_broken(case, vnf):
    """What is not a stream ends here, and is counted."""
    vnf.run('right', 'sh', '-c', 'echo this is no stream | socat -u - '
            f'IP4-SENDTO:{vnf.address("left")}:108,bind={REMOTE},'
            'so-bindtodevice=eth0')
    vnf.until(lambda: vnf.count('broken.count') == 1, 'it is not counted')
