# SPDX-License-Identifier: Apache-2.0
"""The toolstack of a Xen host: cosmosd with libxl, and the switch."""

import shlex
import shutil

from clickos_lab import log
from clickos_lab import paths
from clickos_lab import prereq
from clickos_lab import rust
from clickos_lab import shell
from clickos_lab.xen import image
from clickos_lab.xen import keys
from clickos_lab.xen import libraries
from clickos_lab.xen import patched
from clickos_lab.xen import variants

#: Where dom0 has the programs and their files.
FOLDER = '/opt/clickos'
#: For the hotplug scripts of vifs that valed serves.
_SCRIPT_SETTINGS = f'VALE_CTL=({FOLDER}/vale-ctl ' \
    f'--socket {FOLDER}/valed.sock)\n'
#: Folders of :data:`FOLDER` that outlive a boot: of cosmosd, of valed.
STATES = ('state', 'kept')
VALED_STATE = f'{FOLDER}/kept'
#: A login shell of dom0 finds the programs, and they their daemons.
_PROFILE = f"""\
export PATH=$PATH:{FOLDER}
export COSMOSD_SOCKET={FOLDER}/cosmosd.sock VALED_SOCKET={FOLDER}/valed.sock
"""
#: The programs of the switch, and all.
SWITCH = ('valed', 'vale-ctl', 'vale-store')
PROGRAMS = ('cosmosd', 'cosmos', *SWITCH)
#: The root of dom0 is in memory, so captures are small.
_CONFIGS = {
    'valed': """\
socket = "{folder}/valed.sock"
xenstore = "{folder}/store.sock"
{keeps}
capture_dir = "{folder}/captures"
capture_mib = 32
""",
    'cosmosd': """\
socket = "{folder}/cosmosd.sock"
state_dir = "{folder}/state"
valed_socket = "{folder}/valed.sock"
xenstore_dir = "/run/xenstored"
host_kind = "xen"
memory_mib = {memory_mib}
max_guests = {max_guests}

[xen]
type = "{kind}"
{installed}
vif_script = "/etc/xen/scripts/vif-lab"
max_image_mib = 64
pool = [{pool}]
pool_on_demand = {on_demand}
[roles]
nova = [{nova}]
agent = [{agent}]
"""}
#: The switch sees the part of the store that its ports need.
_START_STORE = f"""
pidof vale-store >/dev/null && exit
cd {FOLDER}; rm -f store.sock
setsid ./vale-store --socket store.sock </dev/null \\
    >>/var/log/vale-store.log 2>&1 &
for i in $(seq 300); do [ -S {FOLDER}/store.sock ] && exit 0; sleep 0.1; done
tail -3 /var/log/vale-store.log >&2; exit 1
"""


def build(state, places, variant=variants.STOCK):
    """Build the programs, in a folder of their own: these need libxl.

    :param variant: of Xen, whose libxl cosmosd is linked with
    """
    root, linked = places.packages, ()
    if variant == variants.PATCHED:
        root = patched.sdk(places)
        linked = '--', '-C', f'link-arg=-Wl,-rpath,{patched.FOLDER}'
    with log.step('toolstack of the Xen host'):
        _cargo(state, root, 'build', '-p', 'cosmos', '-p', 'valed', '-p',
               'vale-ctl', '-p', 'vale-store', '-p', 'vale-tc')
        _cargo(state, root, 'rustc', '-p', 'cosmosd', '--features',
               'cosmosd/xen', '--bin', 'cosmosd', *linked)
        target = built(state, 'cosmosd', variant)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(_folder(state) / 'release/cosmosd', target)


def _cargo(state, root, *words):
    """Run cargo with the libxl below a root."""
    env = {**rust.environment(state), 'XEN_ROOT': str(root),
           'CARGO_TARGET_DIR': str(_folder(state)),
           # Built for tests: two minutes less.
           'CARGO_PROFILE_RELEASE_LTO': 'off'}
    shell.run([prereq.rust_tool('cargo'), words[0], '--release', '--locked',
               *words[1:]], state.log / 'xen-toolstack.log',
              env=env, cwd=paths.REPO, timeout_s=3600)


def build_c_test(state, places, name):
    """Build a C test of libcosmos, with sanitizers; return its path."""
    cosmos, usr = paths.REPO / 'cosmos', places.packages / 'usr'
    program = places.build / name
    shell.run(['cc', '-std=gnu11', '-O1', '-g', '-Wall', '-Wextra',
               '-Wno-format-truncation', '-fno-omit-frame-pointer',
               '-fsanitize=address,undefined', '-fno-sanitize-recover=all',
               '-static-libasan', '-static-libubsan',
               '-I', cosmos / 'include', '-I', cosmos / 'lib',
               '-isystem', usr / 'include',
               *sorted((cosmos / 'lib').glob('*.c')),
               cosmos / f'lib/tests/{name}.c', '-o', program,
               '-L', usr / f'lib/{libraries.TRIPLE}',
               '-Wl,--allow-shlib-undefined', '-lxenlight', '-lxenctrl',
               '-lxenstore', '-lxentoollog', '-lpthread'],
              state.log / 'libcosmos.log')
    return program


def add_script_settings(files):
    """Tell the hotplug scripts of vifs which vale-ctl they call."""
    files.add_text(_SCRIPT_SETTINGS, '/etc/default/vale')


def add(state, contents, programs=PROGRAMS, variant=variants.STOCK):
    """Add programs to what is in dom0 from the start.

    :param variant: of dom0's Xen
    """
    for program in programs:
        contents.add(built(state, program, variant), f'{FOLDER}/{program}',
                     0o755)
    contents.add_text(_PROFILE, '/root/.bash_profile')


def built(state, program, variant=variants.STOCK):
    """Return where a program is after :func:`build`."""
    # Each libxl needs a build of its own.
    inner = variant if program == 'cosmosd' else 'release'
    return _folder(state) / inner / program


def _folder(state):
    return state.target / 'xen'


def start(host, daemon, kind='pvh', installed=True, pool=0,
          memory_mib=1400, pooled_mib=8, max_guests=1024, preconnected=('',),
          keeps=False, on_demand=False):
    """Start a daemon and wait for its socket.

    :param kind: how domains are run, ``pv`` or ``pvh``
    :param installed: guests may be made of the image in dom0, too
    :param pool: guests of that image that are kept booted
    :param memory_mib: what guests may use together
    :param pooled_mib: memory of a guest of the pool
    :param max_guests: how many there may be
    :param preconnected: for each entry there are ``pool`` guests with
        preconnected vifs, as ``vifs = 1``
    :param keeps: valed repeats an operator's requests after its next start
    :param on_demand: guests are kept booted for sizes that are in use, the
        default of cosmosd; tests that count domains have none
    """
    shelves = ', '.join(
        f'{{ memory_mib = {pooled_mib}, guests = {pool}'
        f'{vifs and f", {vifs}"} }}'
        for vifs in preconnected)
    if daemon == 'valed':
        host.dom0.check(_START_STORE)
    line = f'image = "{image.FOLDER}/{image.CLICKOS}"' if installed else ''
    host.dom0.put_text(_CONFIGS[daemon].format(
        folder=FOLDER, kind=kind, installed=line, pool=shelves,
        keeps=f'state_dir = "{VALED_STATE}"' if keeps else '',
        memory_mib=memory_mib, max_guests=max_guests,
        on_demand=str(on_demand).lower(), **keys.USERS),
        f'{FOLDER}/{daemon}.toml')
    host.dom0.check(
        f'cd {FOLDER}; rm -f {daemon}.sock; mkdir -p -m 700 captures; '
        f'setsid ./{daemon} --config {daemon}.toml </dev/null '
        f'>>/var/log/{daemon}.log 2>&1 & '
        f'for i in $(seq 300); do [ -S {FOLDER}/{daemon}.sock ] && exit 0; '
        f'sleep 0.1; done; tail -3 /var/log/{daemon}.log >&2; exit 1')


def command(program, *arguments):
    """Return the line that runs ``cosmos`` or ``vale-ctl`` in dom0."""
    daemon = {'cosmos': 'cosmosd', 'vale-ctl': 'valed'}[program]
    return shlex.join([f'{FOLDER}/{program}',
                       f'--socket={FOLDER}/{daemon}.sock',
                       *map(str, arguments)])


def bring(host, socket):
    """Bring cosmosd's socket here, over the host's SSH connection."""
    shell.run(host.dom0.command(
        '-O', 'forward', '-o', 'StreamLocalBindMask=0177',
        '-L', f'{socket}:{FOLDER}/cosmosd.sock'),
        host.places.log / 'forward.log', cwd=host.places.root)


def kill(host, daemon):
    """End a daemon at once, as a crash would."""
    host.dom0.check(f'kill -9 $(pidof {daemon})')
