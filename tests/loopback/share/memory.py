# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that together need more memory than the software GPU has: memory.py BUILD CASE [SEED]. Each program is a VM of
its own. A program checks every word that it has written (filler.cu). It ends with an error or the right bytes."""
import atexit, mmap, os, random, signal, struct, subprocess, sys, tempfile, time

import vms
from vms import GPUS, LIMIT, PAGE, SESSIONS, folder, processes, programs, run, shared_environment, status, until

seed = int(sys.argv[3]) if len(sys.argv) > 3 else 45
GPU = 32  # MiB
PIECE = 0.5  # MiB that a program allocates at a time
ASLEEP = 10**9  # us: a pause until the program is woken
STEPS = int(os.environ.get('QCU_MEMORY_STEPS', 100))


disks = []  # that are mounted


@atexit.register
def unmount():
    for path in disks:
        subprocess.run(['umount', '-l', path], check=False)
        os.rmdir(path)


class Program:
    def __init__(self, mib, steps=10**9, pause=0, swap=GPU << 20, evict=None, **options):
        fd, path = tempfile.mkstemp(dir=folder)
        os.ftruncate(fd, 32)
        self.page = mmap.mmap(fd, 32)
        os.close(fd)
        env = dict(shared_environment(), QCU_LOOPBACK_SWAP=str(swap))
        env.pop('QCU_LOOPBACK_SHARED', None)  # not one VM
        if evict:
            env['QCU_LOOPBACK_EVICT'] = str(evict)
        env.update({'QCU_LOOPBACK_' + k.upper(): str(v) for k, v in options.items()})
        self.output = open(path + '.out', 'w+')
        self.wakes = pause == ASLEEP
        self.process = subprocess.Popen([programs + 'filler', path, str(int(mib / PIECE)), str(steps), str(seed),
                                         str(pause)], env=env, stdout=self.output, stderr=subprocess.STDOUT)
        processes.append(self.process)

    def numbers(self):
        return struct.unpack('<4Q', self.page[:32])

    def text(self):
        self.output.seek(0)
        return self.output.read()

    def goes_on(self, n=20):
        """Also if it sleeps."""
        self.reaches(self.numbers()[0] + n, self.wakes)

    def reaches(self, steps, wake=False):
        def has_reached():
            if wake:
                self.page[24:32] = struct.pack('<Q', 1)
            return self.numbers()[0] >= steps or self.process.poll() is not None

        until('the program goes on', has_reached)
        if self.process.poll() is not None:
            sys.exit(f'a program ended with {self.process.returncode}: {self.text()}')

    def wait(self, wanted=0):
        """Returns how many of its allocations have failed."""
        if self.process.wait(LIMIT) != wanted:
            sys.exit(f'a program ended with {self.process.returncode}: {self.text()}')
        print(self.text().strip().split('\n')[-1], flush=True)
        return self.numbers()[2]

    def end(self):
        self.page[8:16] = struct.pack('<Q', 1)
        return self.wait()


def broker():
    return vms.broker('--memory', str(GPU))


def other_broker(mib=12):
    """Of the GPU of swap_gpu."""
    return vms.broker('--memory', str(mib), gpu='soft1')


def total(word, gpu='soft'):
    return sum(int(line[line.index(word) + 1]) for line in status(gpu) or [] if line[0] != 'raw')


def expect(what, is_so):
    if not is_so:
        sys.exit(f'{what}; {status()}')


class Raw(vms.Raw):
    """A VM that claims what it likes."""
    MEMORY = 24 + 64 * 8  # where struct turns_memory lies in a page

    def __init__(self, **hello):
        super().__init__(moves=1, **hello)
        self.page = self.pages()
        self.orders = mmap.mmap(self.files[0], GPUS * PAGE)

    def claim(self, session, held=0, fixed=0, away=0, need=0, worked=0, left=0, ask=0, number=0):
        at = session * PAGE
        self.page[at:at + 4] = struct.pack('<I', 1)
        at += self.MEMORY
        self.page[at:at + 56] = struct.pack('<6Q2I', held, fixed, away, need, worked, left, ask, number)

    def ring(self):
        if hasattr(os, 'eventfd'):
            os.eventfd_write(self.files[2], 1)
        else:
            os.write(self.files[2], struct.pack('<Q', 1))


def turns():
    """Two programs of 0.6 of the memory each, then of 0.9: both go on, and both have the right bytes."""
    broker()
    for part in 0.6, 0.9:
        a, b = (Program(int(GPU * part), steps=STEPS // 2, pause=100000) for _ in range(2))
        failed = a.wait() + b.wait()
        expect('allocations failed that were promised', not failed)
    until('nothing is held', lambda: not total('held_mib'))


def idle():
    """An idle program gives its memory without a wait, and only what is needed."""
    broker()
    a = Program(20)
    a.goes_on()
    os.kill(a.process.pid, signal.SIGSTOP)  # neither works nor answers: the other one gets an error at the allocation
    b = Program(20, steps=50)
    expect('no allocation failed', b.wait() > 0)
    os.kill(a.process.pid, signal.SIGCONT)
    a.goes_on()
    a.end()
    a = Program(20, pause=ASLEEP)
    a.reaches(8)
    b = Program(20, steps=50)
    expect('allocations failed', not b.wait())
    a.end()


def full():
    """The store of one of them is too small: the other one hears of it at an allocation, and nothing is wrong."""
    broker()
    a = Program(20, swap=4 << 20, pause=50000)
    a.goes_on()
    b = Program(20, steps=100)
    expect('no allocation failed', b.wait() > 0)
    a.goes_on()
    expect('allocations of the first one failed', not a.end())


def stores():
    """A bound for the stores of all VMs: its sum is kept, who finds no room hears of it at an allocation, what has left
    comes back, and programs that are killed leave nothing behind."""
    rng = random.Random(seed)
    bound = 24  # 10 MiB for new memory
    broker()
    raw = Raw(stores=bound << 20)  # the least that one says counts
    a, b, c = (Program(mib, pause=20000, swap_all=bound + 10) for mib in (20, 15, 15))
    first = [p.numbers()[0] for p in (a, b, c)]

    def all_go_on(steps):
        time.sleep(0.1)
        expect('the stores have more than they may', total('away_mib') <= bound)
        for p in a, b, c:
            expect(f'a program ended: {p.text()}', p.process.poll() is None)
        return all(p.numbers()[0] > n + steps for p, n in zip((a, b, c), first))

    until('all go on', lambda: all_go_on(20))
    for _ in range(int(os.environ.get('QCU_MEMORY_KILLS', 2))):
        c.process.send_signal(signal.SIGKILL)
        c.process.wait()
        c = Program(15, pause=20000)
        first = [p.numbers()[0] for p in (a, b, c)]
        steps = rng.randrange(1, 10)
        until('all go on again', lambda: all_go_on(steps))
    expect('no allocation failed', a.end() + b.end() + c.end())
    until('nothing is away', lambda: not total('away_mib') + total('held_mib'))
    # Half of what is not for parts is for new memory, and the rest of the GPU.
    a = Program(20, pause=ASLEEP)
    a.reaches(8)
    b = Program(24, steps=10)
    expect('more than 10 MiB have left', b.wait() > 0)
    b = Program(20, steps=10)
    expect('8 MiB cannot leave', not b.wait())
    a.end()
    raw.close()


def guaranteed():
    """What a VM is guaranteed stays on the GPU, however idle it is, and guarantees fit into the GPU."""
    broker()
    a = Program(20, pause=ASLEEP, resident=20)
    a.reaches(8)
    b = Program(20, steps=50)
    expect('no allocation failed', b.wait() > 0)
    expect('guaranteed memory has left', not total('away_mib'))
    raw = Raw(resident=13 << 20)
    expect('more is guaranteed than there is', raw.refused())
    expect(f'it does not say why: {raw.why}',
           raw.why == f'raw: --resident 13 MiB is more than is left: the GPU has {GPU} MiB, and other VMs are guaranteed 20 of them')
    a.end()


def real():
    """The sum of what is guaranteed fits into the memory that VMs have found, and whoever is refused is told at once."""
    vms.broker()
    expect('more is guaranteed than a GPU can have', Raw(resident=2**63).refused())
    first = Raw(resident=30 << 20, name=b'first')
    until('the first is there', lambda: total('resident_mib') == 30)
    raws = [Raw(resident=20 << 20, memory=49 << 20), Raw(resident=2**64 - 1, memory=2**64 - 1), Raw(memory=1)]
    expect('49 MiB are more than enough', raws[0].refused() and 'has 49 MiB' in raws[0].why)
    expect('all numbers are allowed', raws[1].refused())
    until('one without a guarantee is there', lambda: len(status()) == 2)
    raws[2].close()
    until('it has left', lambda: len(status()) == 1)
    a = Program(8, steps=10, resident=20, memory=49)
    a.wait()
    expect(f'the program was not told: {a.text()}', 'guaranteed 30 of them' in a.text())
    b = Program(8, steps=10, resident=19, memory=49)
    b.wait()
    expect(f'the program was refused: {b.text()}', 'guaranteed' not in b.text())
    first.close()


def killed():
    """Programs that are killed at any moment, and the broker as well, leave nothing behind."""
    rng = random.Random(seed)
    p = broker()
    a = Program(20, pause=20000)
    a.goes_on()
    for _ in range(int(os.environ.get('QCU_MEMORY_KILLS', 5))):
        b = Program(20, pause=20000)
        b.goes_on(rng.randrange(1, 60))
        b.process.send_signal(signal.SIGKILL)
        b.process.wait()
        p.send_signal(signal.SIGKILL)
        p.wait()
        p = broker()
        a.goes_on()
    expect('allocations failed', not a.end())
    until('nothing is held', lambda: not total('held_mib'))


def evicted():
    """Memory leaves though nobody needs the room. Requests for more than there is are served beside it."""
    vms.broker('--memory', str(GPU), '--evict', '50')
    a, b = (Program(20, pause=5000) for _ in range(2))

    def left():
        return int([line[1] for line in status() if line[0] == 'evicted'][0])

    until('memory has left often', lambda: left() > 2 * GPU)
    a.goes_on()
    b.goes_on()
    expect('allocations failed', not a.end() + b.end())


def gone():
    """A broker that is killed, and none comes in its place: the program waits for one once, and not at each allocation, of
    which there are about a thousand. When one comes, allocations succeed again."""
    p = broker()
    a = Program(4)
    a.goes_on()
    p.send_signal(signal.SIGKILL)
    p.wait()
    a.goes_on(4000)
    expect('no allocation failed', a.numbers()[2] > 100)
    broker()

    def succeeds():
        before = a.numbers()
        a.goes_on(100)
        return a.numbers()[2] == before[2]

    until('allocations succeed', succeeds)
    a.end()


def context():
    """A GPU as full as NVIDIA's can be, where programs take memory without asking: others leave for the context of a new
    program."""
    vms.broker()
    counted = tempfile.mkstemp(dir=folder)[1]
    with open(counted, 'wb') as f:
        f.write(struct.pack('<2q', 0, GPU << 20))
    os.environ['QCU_COUNTED'] = counted
    backend = programs + 'counted_backend.so'
    a = Program(20, pause=ASLEEP, backend=backend)
    a.reaches(8)
    b = Program(5, steps=20, backend=backend)
    expect('allocations failed', not b.wait())
    expect('allocations of the first one failed', not a.end())


def moving():
    """Programs that are killed while their memory leaves or comes back: the others go on, and nothing is left behind."""
    rng = random.Random(seed)
    broker()
    other_broker()
    a = Program(20, pause=20000)
    a.goes_on()
    for _ in range(int(os.environ.get('QCU_MEMORY_KILLS', 5))):
        b = Program(20, pause=20000, swap_gpu=5 << 20)
        b.goes_on(1)
        before = status()
        # Its memory is about to move, or moves, as soon as the numbers change.
        until('memory moves', lambda: status() != before)
        time.sleep(rng.random() * 0.003)
        b.process.send_signal(signal.SIGKILL)
        b.process.wait()
        a.goes_on()
    expect('allocations failed', not a.end())
    until('nothing is held', lambda: not total('held_mib') + total('held_mib', 'soft1'))


def forged():
    """VMs that lie about their memory: they get nothing, and the honest ones go on."""
    p = broker()
    rng = random.Random(seed)
    a = Program(20, pause=20000)
    a.goes_on()
    raws = [Raw(name=b'raw%d' % i) for i in range(8)]
    for i, raw in enumerate(raws):
        # Idle for ever, and with much to give that never comes.
        raw.claim(1, held=0 if i % 2 else 2**20, worked=0)
    b = Program(20, pause=20000)
    first = a.numbers()[0], b.numbers()[0]

    def noise():
        for raw in raws:
            raw.claim(rng.randrange(1, SESSIONS), held=0, fixed=rng.getrandbits(64), away=rng.getrandbits(64),
                      need=rng.choice((0, 1, 2**30, 2**64 - 1)), worked=rng.getrandbits(64),
                      left=rng.getrandbits(64), ask=rng.getrandbits(32), number=rng.choice((0, 1, 2**32 - 1)))
            if not rng.randrange(4):  # the broker reads all claims at each ring
                raw.ring()
        expect('a program ended', a.process.poll() is None and b.process.poll() is None)
        return a.numbers()[0] > first[0] + 8 and b.numbers()[0] > first[1] + 8

    until('the honest go on', noise)
    for raw in raws:
        raw.close()
    expect('the broker has ended', p.poll() is None)
    a.end()
    b.end()


def steps():
    """Random steps of three programs with evictions at any moment. Most memory of two goes to another GPU and to files."""
    broker()
    other_broker(6)
    path = disk()
    files = {'swap': 3 << 20, 'swap_gpu': 3 << 20, 'swap_file': f'{path}:{GPU << 20}'}
    a, b, c = (Program(mib, steps=STEPS, pause=pause, evict=evict, **options) for mib, pause, evict, options in
               ((19, 20000, 40, files), (19, 50000, 10, {}), (10, 0, None, files)))
    # On a slow machine one may not answer in time, and then another one's allocation fails.
    a.wait(), b.wait(), c.wait()
    until('nothing is held', lambda: not total('held_mib') + total('held_mib', 'soft1'))


def odd():
    """Programs in turns, with memory of sizes that the GPU rounds up."""
    gpu = 2 * GPU  # turner has 32 pieces
    vms.broker('--memory', str(gpu))
    fd, path = tempfile.mkstemp(dir=folder)
    os.pwrite(fd, struct.pack('<8Q', 0, 0, 0, 1, 0, 0, 0, 0), 0)
    env = dict(shared_environment(), QCU_LOOPBACK_SWAP=str(gpu << 20))
    env.pop('QCU_LOOPBACK_SHARED', None)
    both = [subprocess.Popen([programs + 'turner', path, str(who), str(gpu * 5 // 8), str(gpu), '1', '4'],
                                 env=env) for who in range(2)]
    processes.extend(both)
    expect('a program failed', all(p.wait(LIMIT) == 0 for p in both))


def disk(size=None):
    """A folder for files of stores; of a file system with so many bytes."""
    path = tempfile.mkdtemp(dir=None if size else folder)
    if size:
        mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size}', 'none', path], capture_output=True, text=True)
        if mounted.returncode:
            os.rmdir(path)
            print(f'no small file system: {mounted.stderr.strip()}', flush=True)
            return None
        disks.append(path)
    return path


def store_file(program, path):
    """Opens the file in which memory of the program lies. None: the program has ended."""
    files = f'/proc/{program.process.pid}/fd/'
    try:
        for name in os.listdir(files):
            if os.readlink(files + name).startswith(path + '/'):
                return open(files + name, 'r+b', buffering=0)
    except OSError:
        pass
    return None


def filed(program, path):
    f = store_file(program, path)
    if not f:
        return 0
    with f:
        return os.fstat(f.fileno()).st_blocks * 512


def file():
    """What finds no room in memory goes to a file, is right when it comes back, and has no name at any time."""
    broker()
    path = disk()
    a = Program(20, swap=4 << 20, swap_file=f'{path}:{GPU << 20}', pause=ASLEEP)
    a.reaches(8)
    expect('a file has a name', not os.listdir(path))
    expect('the program has no file', store_file(a, path))
    expect('a file has bytes without a need', not filed(a, path))
    b = Program(20, swap=4 << 20, swap_file=f'{path}:{GPU << 20}', pause=20000)
    until('memory is in the file', lambda: filed(a, path))
    a.goes_on(16)
    b.goes_on()
    # It is killed while its memory is there.
    until('memory is in the file again', lambda: filed(a, path))
    a.process.send_signal(signal.SIGKILL)
    a.process.wait()
    b.goes_on()
    expect('a file has a name', not os.listdir(path))
    expect('allocations failed', not b.end())


def file_full():
    """A file that is full, by its bound or by its disk: others hear of it at an allocation, and nothing is wrong."""
    broker()
    for path, size in (disk(), 4 << 20), (disk(4 << 20), GPU << 20):
        if not path:
            continue
        a = Program(20, swap=2 << 20, swap_file=f'{path}:{size}', pause=ASLEEP)
        a.reaches(8)
        b = Program(25, steps=0)
        expect('no allocation failed', b.wait() > 0)
        a.goes_on(9)
        expect('allocations of the first one failed', not a.end())


def file_spoiled():
    """A disk that has other bytes than those that were written: the program gets an error, and others go on."""
    broker()
    path = disk()
    a = Program(20, swap=2 << 20, swap_file=f'{path}:{GPU << 20}', pause=20000)
    a.reaches(8)
    b = Program(20, pause=20000)

    def spoil():
        if a.process.poll() is not None:
            return True
        os.kill(a.process.pid, signal.SIGSTOP)
        f = store_file(a, path)
        if f:
            with f:
                for at in range(0, os.fstat(f.fileno()).st_size, 64 << 20):
                    os.pwrite(f.fileno(), b'?' * 4096, at + 4096)
        os.kill(a.process.pid, signal.SIGCONT)
        return False

    until('it ends', spoil)
    expect(f'it ended in another way: {a.text()}', 'cudaErrorOperatingSystem' in a.text() and 'it has other bytes' in a.text())
    b.goes_on()
    expect('allocations failed', not b.end())


def coldest():
    """Programs of one VM: when its memory store is full, what left longest ago goes to the file."""
    broker()
    path = disk()
    fd, vm = tempfile.mkstemp(dir=folder)
    os.close(fd)

    def program(session, mib, **options):
        return Program(mib, swap=12 << 20, swap_file=f'{path}:{2 * GPU << 20}', swap_vm=f'{vm}:{session}', **options)

    a = program(1, 10, pause=ASLEEP)
    a.reaches(8)
    b = program(2, 30, pause=ASLEEP)
    b.reaches(8)
    away = total('away_mib') << 20
    expect('nothing has left, or not to memory', away >= 7 << 20 and not filed(a, path))
    # For this one b leaves, too, and finds no room beside what a has in memory.
    c = program(3, 30, pause=ASLEEP)
    c.reaches(8)
    until('what left first is in the file', lambda: filed(a, path) >= away)
    expect('allocations failed', not (a.end() + b.end() + c.end()))


def gpu():
    """What leaves goes to another GPU first, as far as nobody else has its memory, and then elsewhere. It is counted there,
    stays there until its program wakes, and is gone with the program."""
    broker()
    p = other_broker()

    def lent():
        return total('held_mib', 'soft1')

    Program(4, steps=10, swap_gpu=13 << 20).wait()  # it is told, and goes on as if it were alone
    expect('too much was promised', not status('soft1'))
    a = Program(20, swap_gpu=8 << 20, pause=3 * 10**5)
    a.reaches(8)
    expect('memory is taken without a need', not lent() and total('resident_mib', 'soft1') == 8)
    raw = Raw(of='soft1', resident=5 << 20)
    expect('more is guaranteed than is left', raw.refused() and 'guaranteed 8 of them' in raw.why)
    raw = Raw(of='soft1', resident=4 << 20)
    raw.claim(1, held=7 << 20)
    raw.ring()
    b = Program(20, pause=20000)

    def has(mib):
        now = lent()
        expect(f'it has {now} MiB there', now <= mib)
        return now > mib - 2 if mib else not now  # pieces have up to 2 MiB

    until('it has what others have left', lambda: has(5))
    a.goes_on(1)
    raw.close()
    until('it has all that it may', lambda: has(8))
    a.goes_on(1)
    until('it has it again', lambda: has(8))
    a.process.send_signal(signal.SIGKILL)
    a.process.wait()
    until('it is gone with its program', lambda: has(0))
    # Of a GPU whose broker has gone nobody knows what is free.
    a = Program(20, swap_gpu=8 << 20, pause=3 * 10**5)
    until('it has it, too', lambda: has(8))
    p.send_signal(signal.SIGKILL)
    p.wait()
    a.goes_on(10)
    other_broker()
    until('a new one knows what it has', lambda: has(8))
    b.goes_on()
    expect('allocations failed', not a.end() + b.end())


run(turns, idle, evicted, odd, full, stores, guaranteed, real, killed, gone, context, moving, forged, steps, gpu, file, file_full, file_spoiled, coldest)
