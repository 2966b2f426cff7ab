# SPDX-License-Identifier: Apache-2.0
"""A Linux guest for the cloud: its kernel and its RAM disk, for Glance.

The kernel is Debian's, the RAM disk has busybox and our network driver. The
kernel's command line gives the address of each device, as net0=10.0.0.5/24.
"""

import shutil

from clickos_lab import log
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
    with log.step('Linux guest'):
        linux.build(state, places)
        kernel.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(places.kernel, kernel)
        root = archive.Archive()
        for name in ('dev', 'proc', 'sys'):
            root.add_folder(name)
        driver = places.build / 'vale-front/vale-front.ko'
        linux.add_system(places, root, [driver], _COMMANDS)
        root.add_bytes('init', _INIT.encode(), 0o755)
        root.write(ramdisk)
    stamp.write_text(wanted)
