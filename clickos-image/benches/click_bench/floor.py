# SPDX-License-Identifier: Apache-2.0
"""What the machine allows: times of floor.c, compiled and run."""

import os
import pathlib
import re
import subprocess

SOURCE = pathlib.Path(__file__).parent.parent / 'floor.c'
LINE = re.compile(r'(?P<name>.+?)\t(?P<ns>[0-9.]+)')
UNIT = 'ring copy 64 B, 256 slots'


def measure(folder, cpu):
    """Return nanoseconds by name."""
    program = folder / 'floor'
    subprocess.run(
        [os.environ.get('CC', 'cc'), '-O3', '-march=native', '-o', program,
         SOURCE], check=True)
    output = subprocess.run(
        ['taskset', '-c', str(cpu), program], check=True, text=True,
        stdout=subprocess.PIPE).stdout
    return {line['name']: float(line['ns']) for line in LINE.finditer(output)}
