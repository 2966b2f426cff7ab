# SPDX-License-Identifier: Apache-2.0
"""The mirror with ping and socat as judges."""


def _echo(vnf, text):
    return vnf.run(
        'port', 'sh', '-c',
        f'printf {text} | socat -t 20 - '
        f'UDP:{vnf.address("vif0")}:7,readbytes={len(text)}')


def check(case, vnf):
    case.assertEqual(5, vnf.ping('port', vnf.address('vif0')))
    case.assertEqual('hello', _echo(vnf, 'hello'))
    sent = vnf.count('sent.count')
    vnf.swap()
    case.assertLessEqual(sent, vnf.count('sent.count'))
    case.assertEqual('again', _echo(vnf, 'again'))
