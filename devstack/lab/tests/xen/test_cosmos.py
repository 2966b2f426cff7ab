# SPDX-License-Identifier: Apache-2.0
"""libcosmos and cosmosd with real domains."""

import json
import re

from clickos_lab import bounds
from clickos_lab.xen import bindings
from clickos_lab.xen import image
from clickos_lab.xen import toolstack
from tests.xen import base

_COUNT = 'Idle -> c :: Counter -> Discard;'
_SEVEN = 'InfiniteSource(LIMIT 7) -> c :: Counter -> Discard;'
_WIRE = 'FromDevice(0) -> c :: Counter -> ToDevice(1);\n' \
    'FromDevice(1) -> ToDevice(0);\n'
#: Answers ARP requests for its address and echo requests.
_ANSWERER = """
FromDevice(0) -> kinds :: Classifier(12/0806 20/0001, 12/0800);
to :: Queue -> ToDevice(0);
kinds[0] -> ARPResponder({address} {mac}) -> to;
kinds[1] -> Strip(14) -> CheckIPHeader -> ICMPPingResponder
  -> EtherEncap(0x0800, {mac}, ff:ff:ff:ff:ff:ff) -> to;
"""
#: Sends from its first port to its second.
_LOOP = """
RatedSource(RATE 100) -> EtherEncap(0x88b5, 02:00:00:00:0e:01,
  02:00:00:00:0e:02) -> Queue -> ToDevice(0);
FromDevice(0) -> Discard;
FromDevice(1) -> c :: Counter -> Discard;
"""
_NAMED_LOOP = _LOOP.replace('ToDevice', 'out :: ToDevice')
_LOOP_VIFS = '--vif port=a,segment=1,mac=02:00:00:00:0e:01 ' \
    '--vif port=b,segment=1,mac=02:00:00:00:0e:02'
_VIFS = '--vif port=a,segment=1 --vif port=b,segment=2'
#: Runs requests and prints after each how many processes cosmosd has made
#: since the start; a thread does not count (CLONE_THREAD, linux/sched.h).
_COUNT_PROCESSES = f"""
mount -t tracefs tracefs /sys/kernel/tracing
cd /sys/kernel/tracing
echo 1 >options/record-tgid
echo '!(clone_flags & 0x10000)' >events/task/task_newtask/filter
echo 1 >events/task/task_newtask/enable
# Its helpers, which it made at its start, have its name.
first=$(pidof cosmosd | tr ' ' '\\n' | sort -n | head -n 1)
while read -r request; do
    {toolstack.command('cosmos')} $request >/dev/null </dev/null || exit 1
    echo "$request:" $(grep -c "( *$first) " trace)
done <<'END'
{{requests}}
END
# The shell has made some.
grep -q task_newtask trace
"""
_REQUESTS = (
    'create --name two --config /tmp/idle.click --vif port=two --timeout 60',
    'list', 'host', 'info two', 'console two', 'handlers two',
    'read two c.count', 'write two c.reset 1',
    'install two /tmp/idle.click', 'stop two', 'start two', 'pause two',
    'unpause two')
#: Moments of a creation at which cosmosd is killed, in seconds.
_KILLS_S = (0.05, 0.3, 0.6, 1.0, 1.5, 2.5)
#: The same with a guest of the pool.
_POOL_KILLS_S = (0.02, 0.1, 0.2, 0.3)
#: Moments of a save.
_SAVE_KILLS_S = (0.05, 0.2, 0.4)
_TWIN = '00000000-0000-4000-8000-000000000077'
#: A domain that has been killed exists until its pages are free.
_LEFT = "xl list | awk 'NR > 2'; " \
    'xenstore-ls -f /local/domain/0/backend/vale | grep /vale/; ' \
    'xenstore-ls -f /vm | grep -v 00000000-0000; true'


class LibcosmosTest(base.XenTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in ('test_domain', 'test_store'):
            program = toolstack.build_c_test(cls.state, cls.places, name)
            cls.dom0.put(program, f'/root/{name}', 0o755)

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        bindings.add(cls.state, cls.places, contents)

    def test_python(self):
        out = self.dom0.check(
            bindings.command(f'{image.FOLDER}/{image.CLICKOS}'),
            timeout_s=120)
        self.assertEqual('ok', out.strip())

    def _run(self, kind):
        done = self.dom0.run(
            'ASAN_OPTIONS=allocator_may_return_null=1 '
            f'/root/test_domain {image.FOLDER}/{image.CLICKOS} {kind}',
            timeout_s=120)
        self.assertEqual(0, done.status, done.out + done.err)
        self.assertIn('ok   nothing is left', done.out)

    def test_the_store(self):
        done = self.dom0.run('/root/test_store', timeout_s=120)
        self.assertEqual(0, done.status, done.out + done.err)

    @base.slow
    def test_pv(self):
        self._run('pv')

    def test_pvh(self):
        self._run('pvh')


class CosmosdTest(base.CosmosTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        toolstack.start(cls.host, 'valed')
        toolstack.start(cls.host, 'cosmosd')

    def _cosmos(self, arguments):
        folder = toolstack.FOLDER
        return self.dom0.run(
            f'COSMOSD_SOCKET={folder}/cosmosd.sock {folder}/cosmos '
            f'{arguments}', timeout_s=120)

    def _done(self, arguments):
        result = self._cosmos(arguments)
        self.assertEqual(0, result.status, result.err)
        return result.out

    def _create(self, name, config, more=''):
        self.dom0.put_text(config, f'/root/{name}.click')
        return f'create --name {name} --config /root/{name}.click ' \
            f'--memory 8 --timeout 60 {more}'

    def _assert_nothing_left(self):
        self.wait_for(lambda: not self.dom0.check(_LEFT), 60)
        self.assertEqual([], json.loads(self._done('list -o json')))

    @base.slow
    def test_a_guest_with_two_vifs(self):
        self._done(self._create('wire', _WIRE, _VIFS))
        self.addCleanup(self._assert_nothing_left)
        self.addCleanup(self._done, 'destroy wire')
        self.assertEqual('0', self._done('read wire c.count').strip())
        self._done("write wire c.reset ''")
        console = self._done('console wire')
        self.assertIn('clickos', console)
        self.assertNotIn('x0d', console)
        self._done('pause wire')
        self._done('unpause wire')
        self.assertEqual('0', self._done('read wire c.count').strip())

    def test_the_ports_of_a_guest_come_back_after_valed_died(self):
        self._done(self._create('loop', _LOOP, _LOOP_VIFS))
        self.addCleanup(self._assert_nothing_left)
        self.addCleanup(self._done, 'destroy loop')
        self._assert_forwards('loop')
        toolstack.kill(self.host, 'valed')
        faults = self.wait_for(
            lambda: json.loads(self._done('host -o json'))['faults'])
        self.assertEqual('valed', faults[0]['part'])
        toolstack.start(self.host, 'valed')
        self._assert_forwards('loop')
        self.assertEqual([], json.loads(self._done('host -o json'))['faults'])

    def _assert_forwards(self, name):
        before = int(self._done(f'read {name} c.count'))
        self.wait_for(
            lambda: int(self._done(f'read {name} c.count')) > before)

    def _state(self, name):
        return json.loads(self._done(f'info {name} -o json'))['state']

    def test_a_pause_by_xl_is_seen_and_taken_back(self):
        made = json.loads(self._done(self._create('held', _COUNT)
                                     + ' -o json'))
        self.addCleanup(self._assert_nothing_left)
        self.addCleanup(self._done, 'destroy held')
        for unpause in ('xl unpause', 'cosmos'):
            with self.subTest(unpause=unpause):
                self.dom0.check(f'xl pause {made["domid"]}')
                self.wait_for(lambda: self._state('held') == 'paused')
                self.assertIn('is paused',
                              self._cosmos('read held c.count').err)
                if unpause == 'cosmos':
                    self._done('unpause held')
                else:
                    self.dom0.check(f'{unpause} {made["domid"]}')
                self.wait_for(lambda: self._state('held') == 'running')
                self.assertEqual('0', self._done('read held c.count').strip())

    def test_a_domain_that_xl_restored_is_a_stranger(self):
        create = self._create('twin', _COUNT, f'--uuid {_TWIN}')
        made = json.loads(self._done(create + ' -o json'))
        self.addCleanup(self._assert_nothing_left)
        self.dom0.check(f'xl save {made["domid"]} /run/twin; '
                        'xl restore -e /run/twin', timeout_s=120)
        self.wait_for(lambda: self._state('twin') == 'crashed')
        domid = self.dom0.check(f'xl domid {_TWIN}').strip()
        self.assertRegex(self._done('list'), rf'{_TWIN} .* {domid} +stranger')
        doctor = self._cosmos(f'doctor --valed {toolstack.FOLDER}/valed.sock')
        self.assertIn(f'xl destroy {domid}', doctor.out)
        self._done(f'destroy {_TWIN}')
        refused = self._cosmos(create)
        self.assertEqual(1, refused.status)
        self.assertIn(f'exists: uuid: domain {domid} ', refused.err)
        self.assertIn(domid, self.dom0.check('xl list'))
        self.dom0.check(f'xl destroy {domid}; rm /run/twin')
        self.wait_for(lambda: 'stranger' not in self._done('list'))
        self._done(create)
        self._done('destroy twin')

    def test_a_vif_of_netback(self):
        mac = '00:16:3e:01:00:09'
        self.dom0.check('lab-net bridge br0; '
                        'lab-net endpoint br0 near 10.1.0.1/24')
        self._done(self._create(
            'stock', _ANSWERER.format(address='10.1.0.9', mac=mac),
            f'--vif bridge=br0,mac={mac}'))
        self.addCleanup(self._assert_nothing_left)
        self.addCleanup(self._done, 'destroy stock')
        self.dom0.check('ip netns exec near ping -c 3 -i 0.2 -w 50 10.1.0.9')

    def test_an_image_is_given_and_run(self):
        self.dom0.check(
            f'cp {image.FOLDER}/{image.PKT_GEN} /root/kernel; '
            f'head -c 1000 {image.FOLDER}/{image.CLICKOS} >/root/cut')
        given = json.loads(self._done('-o json image-add /root/kernel'))
        listed = json.loads(self._done('-o json image-list'))
        self.assertIn(given['sha256'], [i['sha256'] for i in listed])
        for file, words in (('/root/cut', 'outside the file'),
                            ('/init', 'no ELF file')):
            result = self._cosmos(f'image-add {file}')
            self.assertEqual(1, result.status)
            self.assertIn(words, result.err)
        self._done(f'image-remove {given["sha256"]}')
        result = self._cosmos(self._create('nobody', _COUNT) +
                              f' --image-sha256 {given["sha256"]}')
        self.assertIn("not in this host's cache", result.err)
        self._done(self._create('given', _COUNT,
                                f'--image {image.FOLDER}/{image.CLICKOS}'))
        self._done('destroy given')
        self._assert_nothing_left()

    def test_a_refused_configuration_leaves_nothing(self):
        result = self._cosmos(self._create('bad', 'a :: Nonesuch;'))
        self.assertEqual(1, result.status)
        self.assertRegex(result.err, r'bad\.click:1:6: .*Nonesuch')
        self._assert_nothing_left()

    @base.slow
    def test_a_second_router(self):
        self._done(self._create('two', _COUNT))
        self.addCleanup(self._assert_nothing_left)
        self.addCleanup(self._done, 'destroy two')
        self._done('load two /root/two.click --rid 1')
        self.assertEqual('0', self._done('read two c.count --rid 1').strip())
        for verb in ('start', 'stop', 'start'):
            self._done(f'{verb} two --rid 1')
        self._done('remove two --rid 1')
        for command in ('read two c.count --rid 1', 'stop two --rid 2'):
            result = self._cosmos(command)
            self.assertEqual(1, result.status)
            self.assertRegex(result.err, 'router [12] is not installed')
        self.assertEqual('0', self._done('read two c.count').strip())

    @base.slow
    def test_saved_and_restored_with_its_counters(self):
        self._done(self._create('keeps', _SEVEN, '--vif port=k,segment=3'))
        self.addCleanup(self._assert_nothing_left)
        self.addCleanup(self._done, 'destroy keeps')
        self.wait_for(lambda: self._done('read keeps c.count') == '7\n')
        saved = self._done('save keeps')
        self.assertRegex(saved, r'bytes +[0-9]{7,}\nguest +keeps\nseconds +')
        self.assertNotIn('running', self._done('list'))
        self.assertEqual('', self.dom0.check("xl list | awk 'NR > 2'"))
        toolstack.kill(self.host, 'cosmosd')
        toolstack.start(self.host, 'cosmosd')
        self._done('restore keeps')
        self.assertEqual('7', self._done('read keeps c.count').strip())
        self._done('stop keeps')
        self._done('install keeps /root/keeps.click')

    @base.slow
    def test_a_guest_whose_save_was_cut_short_goes_on(self):
        self._done(self._create('whole', _SEVEN, '--vif port=w,segment=4'))
        self.addCleanup(self._assert_nothing_left)
        self.addCleanup(self._done, 'destroy whole')
        self.wait_for(lambda: self._done('read whole c.count') == '7\n')
        for moment_s in _SAVE_KILLS_S:
            with self.subTest(moment_s=moment_s):
                self._kill_while('save whole', moment_s)
                if 'saved' in self._done('list'):
                    self._done('restore whole')
                self.assertIn('running', self._done('list'))
                self.assertEqual('7\n', self._done('read whole c.count'))
                self.dom0.check(f'! ls {toolstack.FOLDER}/state/saved/*')

    def test_what_does_not_fit_is_refused_with_numbers(self):
        for more, words in (
                ('--memory 9999', '9999 MiB asked, 0 of 1400 MiB'),
                ('--memory 8 --vif port=wide,slots=2048',
                 'fewer slots or more memory')):
            result = self._cosmos(self._create('large', _COUNT).replace(
                '--memory 8', more))
            self.assertEqual(1, result.status)
            self.assertRegex(result.err, f'no-memory: .*{words}')
        result = self._cosmos('cpu nobody --pin 0')
        self.assertEqual(3, result.status)
        self._assert_nothing_left()

    def test_cosmosd_makes_no_processes(self):
        """Its helpers fork: a fork with threads may never end (adr/0012)."""
        self.dom0.put_text(_COUNT, '/tmp/idle.click')
        requests = (*_REQUESTS, 'destroy two')
        out = self.dom0.check(_COUNT_PROCESSES.format(
            requests='\n'.join(requests)))
        forks = dict(line.rsplit(': ', 1) for line in out.splitlines())
        self.assertEqual(list(requests), list(forks))
        bounds.hold('max_cosmosd_forks', max(map(int, forks.values())))

    def test_dom0_has_a_greater_share_than_a_guest(self):
        shown = self.dom0.check('xl sched-credit2 -d Domain-0')
        self.assertIn('2048', shown)

    def test_the_doctor(self):
        healthy = f'doctor --valed {toolstack.FOLDER}/valed.sock'
        self.assertNotIn('LACKS', self._done(healthy))
        typed = self.dom0.run("bash -lc 'cosmos doctor'")
        self.assertEqual((0, False), (typed.status, 'LACKS' in typed.out),
                         typed.out)
        result = self._cosmos('doctor --valed /nonexistent')
        self.assertEqual(1, result.status)
        self.assertIn('start valed', result.out)

    @base.slow
    def test_a_file_of_xl(self):
        self.dom0.put_text(_COUNT, '/root/x.click')
        self.dom0.put_text(
            f'name = "x"\ntype = "pvh"\nkernel = "{image.FOLDER}/'
            f'{image.CLICKOS}"\nmemory = 8\nvcpus = 1\ncpus = "0"\n'
            'cap = 50\nconfig = "x.click"\n', '/root/x.cfg')
        made = json.loads(self._done('create /root/x.cfg --timeout 60 '
                                     '-o json'))
        self.addCleanup(self._assert_nothing_left)
        self.addCleanup(self._done, 'destroy x')
        self.assertRegex(self.dom0.check('xl sched-credit2'),
                         rf'{made["domid"]} +256 +50')

    def _pooled(self):
        return json.loads(self._done('host -o json'))['pooled']

    @base.slow
    def test_guests_of_the_pool(self):
        toolstack.kill(self.host, 'cosmosd')
        toolstack.start(self.host, 'cosmosd', pool=2)
        self.addCleanup(self._without_pool)
        self.wait_for(lambda: self._pooled() == 2, 60)
        made = json.loads(self._done(
            self._create('taken', _WIRE, _VIFS) + ' -o json'))
        self.assertNotIn('domain', dict(made['steps_ms']))
        taken = json.loads(self._done('info taken -o json'))
        named = self.dom0.check(f'xl domname {made["domid"]}').strip()
        self.assertEqual(taken['uuid'], named)
        self.assertEqual('0', self._done('read taken c.count').strip())
        self._done('destroy taken')
        self.wait_for(lambda: self._pooled() == 2, 60)
        for moment_s in _POOL_KILLS_S:
            with self.subTest(moment_s=moment_s):
                self._kill_while_creating('torn', moment_s, pool=2)
        self._without_pool()
        self._assert_nothing_left()

    @base.slow
    def test_vifs_of_the_pool_are_connected(self):
        self._start_preconnected('vifs = 1')
        self._wait_preconnected()
        self.assertEqual([], self._vale_ctl('ports'))
        self._assert_takes('loop', _NAMED_LOOP, _LOOP_VIFS)
        self._assert_forwards('loop')
        self.assertEqual('02-00-00-00-0E-01',
                         self._done('read loop out.mac').strip())
        self.assertEqual({'a', 'b'},
                         {port['port'] for port in self._vale_ctl('ports')})
        self.assertIn('takes the preconnected vif 0', self.dom0.check(
            'grep vale0:a: /var/log/valed.log'))
        self._assert_takes('plain', _COUNT, '')

    def _start_preconnected(self, preconnected):
        toolstack.kill(self.host, 'cosmosd')
        toolstack.start(self.host, 'cosmosd', pool=2,
                        preconnected=(preconnected,))
        self.addCleanup(self._assert_none_preconnected)
        self.addCleanup(self._without_pool)

    def _wait_preconnected(self):
        self.wait_for(lambda: self._pooled() == 2, 240)
        vifs = self._vale_ctl('preconnected')
        self.assertEqual([(0, True)] * 2, [
            (vif['devid'], vif['connected']) for vif in vifs])
        return {vif['domid'] for vif in vifs}

    def _vale_ctl(self, *command):
        return json.loads(self.dom0.check(
            toolstack.command('vale-ctl', *command, '-o', 'json')))

    def _assert_takes(self, name, config, more):
        """Create a guest from the pool; its vif gets a port."""
        preconnected = self._wait_preconnected()
        self.addCleanup(self._destroy_if_there, name)
        made = json.loads(self._done(
            self._create(name, config, more) + ' -o json'))
        self.assertIn(made['domid'], preconnected)
        self.assertNotIn(made['domid'], {
            vif['domid'] for vif in self._vale_ctl('preconnected')})

    def _assert_none_preconnected(self):
        self._assert_nothing_left()
        self.assertEqual([], self._vale_ctl('preconnected'))

    @base.slow
    def test_a_crash_leaves_no_half_of_a_preconnected_vif(self):
        self._start_preconnected('vifs = 1')
        create = self._create('torn', _LOOP, _LOOP_VIFS)
        for moment_s in _POOL_KILLS_S:
            with self.subTest(moment_s=moment_s):
                self._kill_while(create, moment_s, pool=2,
                                 preconnected=('vifs = 1',))
                self._destroy_if_there('torn')
                self._wait_preconnected()
                self._kill_valed_while(create, moment_s)
        self.wait_for(lambda: len(self._vale_ctl('preconnected')) == 2, 60)
        before = self._wait_preconnected()
        toolstack.kill(self.host, 'valed')
        toolstack.start(self.host, 'valed')
        self.wait_for(lambda: not self._domains() & before, 60)
        self._assert_takes('loop', _LOOP, _LOOP_VIFS)
        self._assert_forwards('loop')

    def _domains(self):
        listed = self.dom0.check("xl list | awk 'NR > 2 { print $2 }'")
        return set(map(int, listed.split()))

    def _kill_valed_while(self, create, moment_s):
        """Kill valed; the guest then forwards, or it is not there."""
        self.dom0.check(
            toolstack.command('cosmos', *create.split())
            + f' >/dev/null 2>&1 & sleep {moment_s}; '
            'kill -9 $(pidof valed)')
        toolstack.start(self.host, 'valed')
        self.dom0.check('while pidof cosmos; do sleep 0.1; done',
                        timeout_s=120)
        if 'torn' in self._done('list'):
            self._assert_forwards('torn')
            self._done('destroy torn')

    @base.slow
    def test_stock_vifs_of_the_pool_are_connected(self):
        mac = '00:16:3e:01:00:0a'
        self.dom0.check('lab-net bridge br0; '
                        'lab-net endpoint br0 near 10.1.0.1/24')
        self._start_preconnected('nics = 1')
        self.wait_for(lambda: self._pooled() == 2, 240)
        preconnected = self._domains()
        self.addCleanup(self._destroy_if_there, 'stock')
        for domid in preconnected:
            link = self.dom0.check(f'ip link show vif{domid}.0')
            self.assertNotIn('br0', link)
            self.assertNotIn('UP', link)
        made = json.loads(self._done(self._create(
            'stock', _ANSWERER.format(address='10.1.0.10', mac=mac),
            f'--vif bridge=br0,mac={mac}') + ' -o json'))
        self.assertIn(made['domid'], preconnected)
        self.dom0.check('ip netns exec near ping -c 3 -i 0.2 -w 50 10.1.0.10')

    def _without_pool(self):
        toolstack.kill(self.host, 'cosmosd')
        toolstack.start(self.host, 'cosmosd')

    @base.slow
    def test_a_domain_that_is_gone_is_noticed(self):
        self._done(self._create('gone', _COUNT))
        self.addCleanup(self._assert_nothing_left)
        self.addCleanup(self._done, 'destroy gone')
        domid = json.loads(self._done('info gone -o json'))['domid']
        self.dom0.check(f'xl destroy {domid}')
        self.wait_for(lambda: json.loads(
            self._done('info gone -o json'))['state'] == 'crashed')

    def test_guests_survive_cosmosd(self):
        self._done(self._create('stays', _COUNT))
        self.addCleanup(self._assert_nothing_left)
        self.addCleanup(self._done, 'destroy stays')
        toolstack.kill(self.host, 'cosmosd')
        toolstack.start(self.host, 'cosmosd')
        self.assertEqual('0', self._done('read stays c.count').strip())
        self.assertIn('clickos', self._done('console stays'))

    @base.slow
    def test_nothing_is_left_of_a_creation_cut_short(self):
        for moment_s in _KILLS_S:
            with self.subTest(moment_s=moment_s):
                self._kill_while_creating('half', moment_s)
                self._assert_nothing_left()

    def _kill_while_creating(self, name, moment_s, pool=0):
        self._kill_while(self._create(name, _COUNT), moment_s, pool)
        self._destroy_if_there(name)

    def _destroy_if_there(self, name):
        if re.search(name, self._done('list')):
            self._done(f'destroy {name}')

    def _kill_while(self, command, moment_s, pool=0, preconnected=('',)):
        """Kill cosmosd ``moment_s`` after a command; start it again."""
        folder = toolstack.FOLDER
        self.dom0.check(
            f'COSMOSD_SOCKET={folder}/cosmosd.sock {folder}/cosmos '
            f'{command} >/dev/null 2>&1 & sleep {moment_s}; '
            'kill -9 $(pidof cosmosd); wait')
        toolstack.start(self.host, 'cosmosd', pool=pool,
                        preconnected=preconnected)
