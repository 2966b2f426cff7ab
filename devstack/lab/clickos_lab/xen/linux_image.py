# SPDX-License-Identifier: Apache-2.0
"""A Linux guest for the cloud: its kernel and its RAM disk, for Glance.

The kernel is Debian's, the RAM disk has busybox and our network driver. The
kernel's command line gives the address of each device, as net0=10.0.0.5/24.
"""

import struct

from clickos_lab import errors
from clickos_lab import say
from clickos_lab import stamps
from clickos_lab.xen import archive
from clickos_lab.xen import image
from clickos_lab.xen import linux
from clickos_lab.xen import modules

#: The images' names in Glance, behind that of the host's first image.
KERNEL, RAMDISK = '-linux', '-linux-ramdisk'
#: Nova replaces the variable by the address of the server's first port. So
#: does the driver for each variable of docs/interfaces.md.
COMMAND_LINE = ('console=hvc0 rdinit=/init mitigations=off '
                'cryptomgr.notests net0=$PORT0_NET')
#: What the guest writes to its console.
READY = 'guest: ready'

_LAB = 'devstack/lab/clickos_lab/xen'
#: What the files are built from.
_INPUTS = ('xen-patches/linux-6.1/vale-front', f'{_LAB}/linux.py',
           f'{_LAB}/linux_image.py', f'{_LAB}/archive.py')
_COMMANDS = ('sh', 'mount', 'insmod', 'ip', 'cat', 'sleep')
#: Devices may come and go.
_INIT = f"""\
#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sysfs /sys
insmod /vale-front.ko
ip link set lo up
echo "{READY}"
known=" "
while :; do
    now=" "
    for path in /sys/class/net/eth*; do
        [ -e "$path/address" ] || continue
        device=${{path##*/}}
        now="$now$device "
        case "$known" in *" $device "*) continue ;; esac
        eval "address=\\$net${{device#eth}}"
        [ -z "$address" ] || ip address add "$address" dev "$device"
        ip link set "$device" up
        echo "guest: $device $(cat "$path/address") $address"
    done
    for device in $known; do
        case "$now" in
            *" $device "*) ;;
            *) echo "guest: $device has gone" ;;
        esac
    done
    known=$now
    sleep 1
done
"""
#: Of an ELF file for 64 bits: places in its header, and a program header.
_PHOFF, _SHOFF, _PHNUM, _SHNUM = 0x20, 0x28, 0x38, 0x3c
_ENTRY = struct.Struct('<IIQQQQQQ')
_LOAD = 1


def files(state):
    """Return the paths of kernel and RAM disk, built or not."""
    folder = image.folder(state)
    return folder / 'linux', folder / 'linux.cpio'


def is_built(state):
    """Tell whether both files are there."""
    return all(path.exists() for path in files(state))


def build(state, places):
    """Build both files, if their sources changed.

    The driver is built with the headers of dom0's kernel, which the patched
    netback needs, too.
    """
    kernel, ramdisk = files(state)
    stamp = kernel.with_suffix('.stamp')
    wanted = stamps.digest(stamps.tracked(*_INPUTS),
                           modules.folder(places).name)
    if is_built(state) and stamps.fresh(stamp, wanted):
        return
    with say.step('Linux guest'):
        linux.build(state, places)
        kernel.parent.mkdir(parents=True, exist_ok=True)
        kernel.write_bytes(slim(places.kernel.read_bytes()))
        root = archive.Archive()
        for name in ('dev', 'proc', 'sys'):
            root.add_folder(name)
        driver = places.build / 'vale-front/vale-front.ko'
        linux.add_system(places, root, [driver], _COMMANDS)
        root.add_bytes('init', _INIT.encode(), 0o755)
        root.write(ramdisk)
    stamp.write_text(wanted)


def slim(elf):
    """Return a kernel without what its loader does not read.

    Sections are left out, and zeros at the end of a segment, which the loader
    makes. Debian's kernel becomes half as large.
    """
    count, = struct.unpack_from('<H', elf, _PHNUM)
    offset, = struct.unpack_from('<Q', elf, _PHOFF)
    headers = [list(_ENTRY.unpack_from(elf, offset + n * _ENTRY.size))
               for n in range(count)]
    header = bytearray(elf[:64])
    struct.pack_into('<Q', header, _PHOFF, len(header))
    struct.pack_into('<Q', header, _SHOFF, 0)
    # Their number, and which one has names.
    struct.pack_into('<HH', header, _SHNUM, 0, 0)
    parts, end, places = [], len(header) + count * _ENTRY.size, []
    for entry in (each for each in headers if each[0] == _LOAD):
        content = elf[entry[2]:entry[2] + entry[5]].rstrip(b'\0')
        places.append((entry[2], entry[5], end))
        entry[2], entry[5] = end, len(content)
        parts.append(content)
        end += len(content)
    for entry in (each for each in headers if each[0] != _LOAD):
        entry[2] = _moved(entry[2], entry[5], places)
    table = b''.join(_ENTRY.pack(*entry) for entry in headers)
    return b''.join([bytes(header), table, *parts])


def _moved(offset, size, places):
    """Return where a part of a segment lies now."""
    for before, length, now in places:
        if before <= offset and offset + size <= before + length:
            return offset - before + now
    raise errors.LabError(f'kernel: {size} bytes at {offset} lie in no '
                          'segment that is loaded')
