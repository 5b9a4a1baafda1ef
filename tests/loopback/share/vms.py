# SPDX-License-Identifier: GPL-2.0-or-later
"""What shares.py and memory.py have in common: a broker of the software GPU, and VMs that say to it what they like.
Both are called with BUILD CASE. QCU_PROGRAMS names the build with the CUDA programs, if BUILD has none."""
import fcntl, mmap, os, shutil, signal, socket, struct, subprocess, sys, tempfile, time

# A sanitizer's runtime is for the programs. It would look for leaks in Python, too.
if 'LD_PRELOAD' in os.environ:
    os.environ['QCU_PRELOAD'] = os.environ.pop('LD_PRELOAD')
    os.execv(sys.executable, [sys.executable, *sys.argv])
build, case = os.path.abspath(sys.argv[1]), sys.argv[2]
programs = os.path.abspath(os.environ.get('QCU_PROGRAMS', build)) + '/tests/loopback/'
folder = tempfile.mkdtemp(prefix='qcu-share-')
LIMIT = 280 * int(os.environ.get('QCU_SLOW', 1))  # seconds: only something that hangs takes so long
PAGE, GPUS, SESSIONS, SLOTS = 4096, 16, 64, 64
processes = []


def until(what, condition):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            sys.exit(f'{what}: not after {LIMIT} s; {status()}')
        time.sleep(0.005)


def shared_environment():
    env = dict(os.environ, QCU_LOOPBACK_SHARE=folder)
    if 'QCU_PRELOAD' in env:
        env['LD_PRELOAD'] = env['QCU_PRELOAD']
    env['LD_LIBRARY_PATH'] = ':'.join([build + '/loopback', *filter(None, [env.get('LD_LIBRARY_PATH')])])
    return env


def broker(*options, gpu='soft'):
    p = subprocess.Popen([build + '/qcu-device/qcu-share', '--folder', folder, '--gpu', gpu, *options])
    processes.append(p)
    until('the broker answers', lambda: status(gpu) is not None)
    return p


def status(gpu='soft'):
    """Lines of the broker's status as lists of words; None: it does not answer."""
    p = subprocess.run([build + '/qcu-device/qcu-share', '--folder', folder, '--gpu', gpu, '--status'],
                       capture_output=True, text=True)
    return None if p.returncode else [line.split() for line in p.stdout.splitlines()]


def memory_file(size, seals=True):
    fd = os.memfd_create('test', os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if seals:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


class Raw:
    """A VM that says to the broker what it likes."""

    def __init__(self, orders=GPUS * PAGE, reports=GPUS * SESSIONS * PAGE, seals=True, magic=0x71637531, version=5,
                 gpu=0, weight=100, maximum=0, interactive=0, moves=0, resident=0, memory=0, swap=0, stores=0, stays=0, name=b'raw', files=3,
                 size=None, of='soft'):
        self.files = [memory_file(orders, seals), memory_file(reports, seals),
                      os.eventfd(0, os.EFD_NONBLOCK) if hasattr(os, 'eventfd') else os.pipe()[0]]
        self.files.append(os.dup(self.files[2]))
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        while True:
            try:
                self.socket.connect(f'{folder}/{of}.share')
                break
            except BlockingIOError:  # as many wait as can
                time.sleep(0.001)
        self.socket.settimeout(LIMIT)
        hello = struct.pack('<8I4Q64s', magic, version, gpu, weight, maximum, interactive, moves, stays, resident,
                            memory, swap, stores, name)
        socket.send_fds(self.socket, [hello if size is None else hello[:size]], self.files[:files])

    def refused(self):
        """The broker has closed the connection."""
        try:
            self.why = self.socket.recv(4096).decode()
            return not self.why or self.socket.recv(1) == b''
        except ConnectionResetError:
            return True

    def pages(self):
        return mmap.mmap(self.files[1], GPUS * SESSIONS * PAGE)

    def close(self):
        self.socket.close()
        for fd in self.files:
            os.close(fd)


def run(*cases):
    try:
        {f.__name__: f for f in cases}[case]()
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
        shutil.rmtree(folder)
