# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that share the software GPU by agreement: shares.py BUILD CASE. Each program is a VM of its own to the
broker. What is compared is how many kernels each program has ended meanwhile, so it does not matter how fast the
machine is. A program whose threads wait for a processor has no work for the GPU, and so no share. So broker and programs
go before all other processes. Their kernels sleep, and they hardly need a processor.

Cases with gpu in their name are for a real GPU (tests/gpu/shares.sh): there the kernels compute, and time is measured,
REPEAT times; the median counts. NATIVE names the folder of NVIDIA's runtime, for the same without a broker; PRELOAD
libraries of ours; ROWS a file to which the medians are added, in the form of perf/results/*/all.csv."""
import mmap, os, random, re, signal, socket, statistics, struct, subprocess, sys, tempfile, time

from vms import GPUS, LIMIT, PAGE, SESSIONS, SLOTS, Raw, broker, build, folder, processes, run, shared_environment, status, until

KERNEL = 500000  # ns
LONGER = 4 * KERNEL  # where no more than one has to be in flight
LOOKED_AT = 10**9  # ns of kernels, at least
KIND = 'work' if 'QCU_LOOPBACK_BACKEND' in os.environ else 'wait'
REPEAT = int(os.environ.get('REPEAT', '3'))


def native_environment():
    return dict(os.environ, LD_LIBRARY_PATH=os.environ['NATIVE'])


class Program:
    """A program that keeps the GPU busy, with a count of its kernels that have ended."""

    def __init__(self, ns=KERNEL, kind=KIND, native=False, **options):
        fd, path = tempfile.mkstemp(dir=folder)
        os.ftruncate(fd, 16)
        self.page = mmap.mmap(fd, 16)
        os.close(fd)
        self.ns = ns
        env = native_environment() if native else shared_environment()
        if 'PRELOAD' in env and not native:
            env['LD_PRELOAD'] = env['PRELOAD']
        env.update({'QCU_LOOPBACK_' + k.upper(): str(v) for k, v in options.items()})
        self.process = subprocess.Popen([build + '/tests/loopback/hog', path, str(ns), '1000000000', kind], env=env)
        processes.append(self.process)

    def count(self):
        return struct.unpack('<Q', self.page[:8])[0]

    def goes_on(self, n=20):
        more = self.count() + n
        until('the program goes on', lambda: self.count() >= more or self.process.poll() is not None)
        if self.process.poll() is not None:
            sys.exit(f'a program ended with {self.process.returncode}')

    def end(self):
        self.page[8:16] = struct.pack('<Q', 1)
        if self.process.wait(LIMIT):
            sys.exit(f'a program ended with {self.process.returncode}')


def go_before_others():
    """This process, and those that it starts."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        print('real-time priority is not allowed: other work on the processors may disturb the shares', flush=True)


def sharing(n):
    """So many VMs are known, and none is alone."""
    lines = status() or []
    return len(lines) >= n and not any('free' in line for line in lines)


def expect_shares(programs, wanted, within=0.05):
    """Each program has its part of the kernels from now on. A busy machine disturbs some turns, so many are looked at
    until the parts of the last ones are right; parts that are wrong stay wrong."""
    until('all programs share', lambda: sharing(len(programs)))
    half = LOOKED_AT // programs[0].ns // 2
    counts = [[p.count() for p in programs]]
    for _ in range(40):
        until('kernels end', lambda: sum(p.count() for p in programs) - sum(counts[-1]) >= half)
        counts.append([p.count() for p in programs])
        if len(counts) < 3:
            continue
        done = [now - before for now, before in zip(counts[-1], counts[-3])]
        parts = [d / sum(done) for d in done]
        if all(abs(part - want) <= within for part, want in zip(parts, wanted)):
            print(f'{sum(done)} kernels:', ' '.join(f'{part:.3f}' for part in parts), flush=True)
            return
    sys.exit(f'{sum(done)} kernels: {parts} are not {wanted}')


def weights():
    go_before_others()
    broker()
    for other in 100, 300, 700:
        a, b = Program(weight=100), Program(weight=other)
        expect_shares([a, b], [100 / (100 + other), other / (100 + other)])
        a.end()
        b.end()


def alone():
    """Nobody is held back, and the broker does not even look."""
    broker()
    a = Program(LONGER)
    a.goes_on()
    looks = int(subprocess.check_output(['awk', '/^voluntary/ {print $2}',
                                         f'/proc/{processes[0].pid}/status']))
    a.goes_on(250)
    more = int(subprocess.check_output(['awk', '/^voluntary/ {print $2}', f'/proc/{processes[0].pid}/status']))
    line, = status()
    if 'free' not in line or line[line.index('waited_ms') + 1] != '0':
        sys.exit(f'a VM that is alone: {line}')
    print(f'the broker slept {more - looks} times')
    a.end()


def stops():
    """A stopped program gives its share away, and has it back."""
    go_before_others()
    broker()
    a, b = Program(LONGER), Program(LONGER)
    expect_shares([a, b], [0.5, 0.5])
    os.kill(a.process.pid, signal.SIGSTOP)
    b.goes_on(250)
    os.kill(a.process.pid, signal.SIGCONT)
    expect_shares([a, b], [0.5, 0.5])
    os.kill(a.process.pid, signal.SIGKILL)
    a.process.wait()
    b.goes_on(250)
    until('the killed program is gone', lambda: len(status()) == 1)
    b.end()


def broker_dies():
    """Programs go on without it, and share again with the next one."""
    go_before_others()
    a, b = Program(LONGER), Program(LONGER)  # before there is one
    a.goes_on()
    for how in signal.SIGKILL, signal.SIGTERM:
        p = broker()
        expect_shares([a, b], [0.5, 0.5])
        p.send_signal(how)
        p.wait()
        a.goes_on()
        b.goes_on()
    p = broker()
    until('all programs share', lambda: sharing(2))
    p.send_signal(signal.SIGSTOP)  # it hangs: who waits goes on after a second
    for _ in range(3):
        a.goes_on()
        b.goes_on()
    p.send_signal(signal.SIGCONT)
    expect_shares([a, b], [0.5, 0.5])
    a.end()
    b.end()


def strangers():
    """What the broker refuses, and what it costs the others: nothing."""
    go_before_others()
    p = broker()
    a, b = Program(LONGER, weight=100), Program(LONGER, weight=300)
    until('both share', lambda: sharing(2))
    files = f'/proc/{p.pid}/fd'
    before = len(os.listdir(files))
    for bad in ({'magic': 1}, {'version': 4}, {'version': 6}, {'moves': 2}, {'stays': 1}, {'moves': 1, 'stays': 2}, {'gpu': GPUS}, {'weight': 0}, {'weight': 10001},
                {'maximum': 101},
                {'interactive': 2}, {'name': b''}, {'name': b'a b'}, {'name': b'x' * 64}, {'name': b'\x1b[2J'},
                {'files': 2}, {'files': 4}, {'files': 0}, {'size': 12}, {'size': 0}, {'seals': False}, {'orders': GPUS * PAGE - 1},
                {'reports': PAGE}):
        raw = Raw(**bad)
        if not raw.refused():
            sys.exit(f'the broker takes {bad}')
        raw.close()
    # One who asks for the status may have been there before.
    until('the broker has closed their files', lambda: len(os.listdir(files)) <= before)
    silent = []
    for _ in range(100):  # more than it lets wait; those who say nothing are dropped after a while
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)
        try:
            s.connect(folder + '/soft.share')
        except BlockingIOError:  # as many wait as can
            pass
        silent.append(s)
    until('the silent are dropped', lambda: status() is not None)
    twice = Raw()
    twice.socket.send(b'more')  # a VM says hello once
    if not twice.refused():
        sys.exit('the broker goes on with who says more')
    expect_shares([a, b], [0.25, 0.75])
    if p.poll() is not None:
        sys.exit('the broker has ended')
    a.end()
    b.end()


def forged():
    """VMs whose pages are noise, and who ring without end. They are charged for what they say, so the honest ones
    keep at least what was agreed with so many."""
    go_before_others()
    p = broker()
    rng = random.Random(44)
    a, b = Program(LONGER, weight=5000), Program(LONGER, weight=5000)
    until('both share', lambda: sharing(2))
    raws = [Raw(weight=1, name=b'raw%d' % i) for i in range(20)]
    pages = [raw.pages() for raw in raws]
    first = a.count(), b.count()

    def noise():
        for raw, page in zip(raws, pages):
            at = rng.randrange(SESSIONS) * PAGE
            what = rng.randrange(4)
            page[at:at + 64 + SLOTS * 8] = (rng.randbytes(64 + SLOTS * 8) if what else bytes(64 + SLOTS * 8))
            page[at:at + 8] = struct.pack('<2I', 1, rng.choice((0, 1, SLOTS, 2**32 - 1)))
            os.write(raw.files[2], struct.pack('<Q', 1))
        return a.count() - first[0] + b.count() - first[1] >= LOOKED_AT // LONGER

    until('the honest go on', noise)
    for raw in raws:
        raw.close()
    if p.poll() is not None:
        sys.exit('the broker has ended')
    expect_shares([a, b], [0.5, 0.5])
    a.end()
    b.end()


def programs():
    """Programs whose threads use one stream, and whose kernels wait for later copies, beside one that is busy."""
    broker()
    busy = Program()
    busy.goes_on()
    for name in 'many_small', 'mem_semantics', 'legacy_order':
        p = subprocess.run([f'{build}/tests/guest/{name}'], env=shared_environment(), timeout=LIMIT)
        if p.returncode:
            sys.exit(f'{name} ended with {p.returncode}')
    busy.end()


def many():
    """VMs come and go."""
    go_before_others()
    p = broker()
    a, b = Program(LONGER), Program(LONGER)
    rng = random.Random(7)
    there = []
    for _ in range(600):
        if there and (len(there) == 120 or rng.random() < 0.4):
            there.pop(rng.randrange(len(there))).close()
        else:
            there.append(Raw(weight=rng.randrange(1, 10001), interactive=rng.randrange(2)))
    until('all are known', lambda: len(status() or []) == len(there) + 2)
    expect_shares([a, b], [0.5, 0.5])
    for raw in there:
        raw.close()
    until('all are gone', lambda: len(status()) == 2)
    if p.poll() is not None:
        sys.exit('the broker has ended')
    a.end()
    b.end()


def counted(programs, seconds, times=1):
    """How many pieces of work of each program end in a second, so many times, once all are at it."""
    for p in programs:
        p.goes_on(1)
    time.sleep(1)
    for _ in range(times):
        first, began = [p.count() for p in programs], time.monotonic()
        time.sleep(seconds)
        now = [p.count() for p in programs]
        yield [(n - f) / (time.monotonic() - began) for n, f in zip(now, first)]


def end_all(programs):
    for p in programs:
        p.end()


def show_parts(numbers):
    return ' '.join(f'{n / sum(numbers):.3f}' for n in numbers)


def median_parts(rounds):
    """The median of each one's part."""
    return [statistics.median(column) for column in zip(*([n / sum(numbers) for n in numbers] for numbers in rounds))]


def write_rows(case, names, unit='', **columns):
    """Prints the columns, and adds a row for each name to the file ROWS."""
    for label, values in columns.items():
        print(f'{case}, {label}:', ' '.join(f'{v:.3f}' for v in values), flush=True)
    if 'ROWS' in os.environ:
        with open(os.environ['ROWS'], 'a', encoding='utf-8') as f:
            for label, values in columns.items():
                f.writelines(f'{label},shares,{case}/{name},0,{v:.4f},{unit},,,,{REPEAT},,,,,\n'
                             for name, v in zip(names, values))


def gpu_parts(case, kinds, weights, seconds, alone=None):
    """Parts of the GPU's time by agreement and natively, and the throughput of both. A program's work counts as what a
    piece of it takes, or as a part of what it does alone."""
    rounds = {True: [], False: []}
    costs = [1 / a for a in alone] if alone else [ns for kind, ns in kinds]
    for native in rounds:
        there = [Program(ns, kind, native, weight=w) for (kind, ns), w in zip(kinds, weights)]
        for rates in counted(there, seconds, REPEAT):
            rounds[native].append([rate * cost for rate, cost in zip(rates, costs)])
        end_all(there)
    names = [f"{i}: {f'{ns / 1e6:g} ms' if kind == 'work' else kind}" for i, (kind, ns) in enumerate(kinds, 1)]
    write_rows(case, names, wanted=[w / sum(weights) for w in weights],
               native=median_parts(rounds[True]), agreed=median_parts(rounds[False]))
    print('each round:', '; '.join(show_parts(numbers) for numbers in rounds[False]))
    print('throughput beside natively: '
          f'{statistics.median(sum(a) / sum(n) for a, n in zip(rounds[False], rounds[True])):.3f}', flush=True)


def gpu_weights():
    broker()
    for weights in [100, 100], [100, 300], [100, 700], [100] * 4:
        gpu_parts('weights ' + ' '.join(str(w // 100) for w in weights), [('work', KERNEL)] * len(weights), weights, 3)


def gpu_lengths():
    """Kernels of 0.05, 5, 50 and 100 ms."""
    broker()
    for weights in [100] * 4, [100, 200, 400, 800]:
        gpu_parts('lengths ' + ' '.join(str(w // 100) for w in weights),
                  [('work', ns) for ns in (50000, 5000000, 50000000, 100000000)], weights, 10)


def gpu_mixed():
    """A VM of launches, one of graphs, one of cuBLAS: parts of what each does alone."""
    broker()
    kinds = [('work', 500000), ('graph', 2000000), ('gemm', 2048)]
    alone = []
    for kind, ns in kinds:
        there = [Program(ns, kind)]
        alone += next(counted(there, 3))
        end_all(there)
    gpu_parts('mixed', kinds, [100] * 3, 4, alone)


def gpu_interactive():
    """Launch and wait, and a small copy, beside kernels of 5 ms: what 99 of 100 take at most, in us."""
    broker()
    columns, names = {}, ('launch and wait', '4 KiB')
    for what in 'alone', 'native', 'batch', 'interactive':
        native = what == 'native'
        there = [] if what == 'alone' else [Program(5000000, native=native)]
        for p in there:
            p.goes_on(10)
        env = native_environment() if native else shared_environment()
        env['QCU_LOOPBACK_INTERACTIVE'] = str(int(what == 'interactive'))
        rounds = []
        for _ in range(REPEAT):
            out = subprocess.check_output([build + '/tests/loopback/asker', '5'], env=env, text=True)
            print(f'{what}:', out.replace('\n', '; '), flush=True)
            rounds.append([int(re.search(f'^{name}: .* p99 (\\d+)', out, re.M)[1]) for name in names])
        columns[what] = [statistics.median(column) for column in zip(*rounds)]
        end_all(there)
    write_rows('p99', names, 'us', **columns)


def gpu_stops():
    """How many ms the other one lacks after a program is stopped, and how many it lacks when it goes on."""
    broker()
    a = Program()
    alone, = next(counted([a], 2))
    b = Program()
    print('both:', show_parts(next(counted([a, b], 2))))
    for _ in range(5):
        lacks = []
        for signal_, p, part in (signal.SIGSTOP, b, 1), (signal.SIGCONT, a, 0.5):
            before, began = p.count(), time.monotonic()
            os.kill(a.process.pid, signal_)
            time.sleep(0.3)
            lacks.append((time.monotonic() - began) * 1000 - (p.count() - before) / alone / part * 1000)
            time.sleep(0.5)
        print(f'stopped: the other lacks {lacks[0]:.1f} ms; goes on: it lacks {lacks[1]:.1f} ms', flush=True)
    end_all([a, b])


run(weights, alone, stops, broker_dies, strangers, forged, programs, many, gpu_weights, gpu_lengths, gpu_mixed,
    gpu_interactive, gpu_stops)
