# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What --help and --help-all of the launcher print. scripts/qcu sources this file.

qcu='scripts/qcu'
! installed || qcu='qcu'

# All options, the usual ones first. A command's --help prints some of them.
options() {
	cat <<-'EOF'
		  -c COMMAND          shell: run COMMAND and end with its exit code
		  --script FILE       vm: the shell script that runs in the guest, as root
		  --with FILE         take FILE along, with the libraries that it needs
		  --disk IMAGE        vm: boot this disk (raw or qcow2), which has a guest package of qCUDA
		  --seed IMAGE        with --disk: one more disk, read-only, for cloud-init
		  --packages DIR      with --disk: show the guest this folder, as the 9p share qcuda
		  --save FILE         with --disk: save the VM that runs with this disk, and end it
		  --restore FILE      with --disk: go on with the VM that was saved there; all other options
		                      must be those of the VM
		  --clone FILE        the same, any number of times at once: what the VM writes on its disk is lost
		                      in the end
		  --print             with --disk: print QEMU's arguments, and start nothing
		  --root DIR          run, shell: the program's root is DIR, and what is installed there runs with
		                      its own libraries; what it writes there is lost in the end
		  --image IMAGE       run, shell: the same with a container's image: podman's, or an OCI folder
		  -v HOST:GUEST[:ro]  share the folder HOST, too, as GUEST in the guest; ro: the guest cannot
		                      write there; may be repeated (also --volume)
		  --share DIR         share DIR with the guest and not the current folder
		  --mem SIZE          guest memory (default 2G)
		  --vram SIZE         how much memory of the GPU all programs of the VM may have together
		                      (default: no limit)
		  --cpus N            guest CPUs (default 2)
		  --gpu soft|cuda|auto
		                      software GPU, the host's GPU, or the host's if there is one
		  --check             run on the software GPU, and report wrong uses of memory: outside of it,
		                      reads of what nothing has written, races on shared memory
		  --error-exitcode N  with --check: the program ends with N if anything was reported, unless
		                      a signal ends it
		  --timeout SECONDS   end the VM after that time, with exit code 124
		  --verbose           say what happens, keep and show the logs' folder
		  --map cvm|ncvm      how copies see scattered chunks: remapped side by side or
		                      piece by piece (default cvm)
		  --chunk SIZE        chunk size, 64K to 64M (default: the driver's)
		  --prewarm N         keep that many mirrors ready for the next programs (default: 1
		                      with the host's GPU, 0 in software)
		  --sessions N        how many guest processes may use CUDA at once (default 16)
		  --nvml own|full|none
		                      what programs learn of the GPU: clocks and what this VM does (own,
		                      the default); also temperature, power and what the whole GPU does; neither
		  --name NAME         what qcu top calls this VM (default: the program's name)
		  --preload           with --root: load our libcudart before all other libraries, for
		                      programs whose own search path leads to another one
		  --opencl            take PoCL along, also if PROGRAM does not name libOpenCL.so.1
		  --net               in a step of a job of Slurm: a network between the VMs of its tasks
		  --vulkan[=SIZE]     a GPU for Vulkan, too; SIZE is how much of its memory the guest can
		                      map at once (default 1G)
		  --render-node FILE  with --vulkan: which GPU, /dev/dri/renderD128 for example; none for
		                      software (default: the first that can be opened)
		  --klog FILE         save the guest's kernel log there
		  --accel kvm|tcg|auto
		                      hardware virtualisation or emulation (default auto)
		  --qemu own|system|auto
		                      our QEMU, this machine's own (10.2 and later), or ours if it was built
		                      and else this machine's (default: QCU_QEMU or auto)
		  --device-arg ARG    one more argument for qcu-device, such as --limit=streams=100
		                      (qcu-device --help lists them); may be repeated
		  --module-arg ARG    one more parameter for qcuda.ko; may be repeated
		  --qemu-arg ARG      one more argument for QEMU; may be repeated
		  --cold              boot the guest, and do not go on from a saved one
		  --no-device         boot without the qCUDA device
		  --no-module         do not load qcuda.ko
		  --no-sandbox        for debugging, with a guest that you trust: QEMU and
		                      qcu-device keep all your rights
		  --help-all          print all options of run, shell and vm, and the exit codes
	EOF
}

# some_options OPTION...: prints these of them.
some_options() {
	options | awk -v want=" $* " '/^  -/ { on = index(want, " " $1 " ") } on'
}

usage() {
	case ${1:-} in
	run)
		cat <<-EOF
			usage: $qcu run [options] PROGRAM [ARG...]

			Boots a small guest, runs PROGRAM in it, and ends with its exit code. The guest sees the
			current folder, PROGRAM with its libraries, and read-only the files that an ARG names.

		EOF
		some_options --root --image -v --share --mem --vram --cpus --gpu --check --error-exitcode --timeout --verbose --help-all
		;;
	shell)
		cat <<-EOF
			usage: $qcu shell [options] [-c COMMAND]

			Starts a shell in a small guest, which sees the current folder.

		EOF
		some_options -c --root --image -v --share --with --mem --vram --cpus --gpu --verbose --help-all
		;;
	vm)
		cat <<-EOF
			usage: $qcu vm [options] --script FILE [--with FILE]... [ARG...]
			       $qcu vm [options] --disk IMAGE [--seed IMAGE] [--print]
			               [--save FILE|--restore FILE|--clone FILE]

			Runs a shell script in a small guest (each --with FILE lies on its PATH), or boots a disk.

		EOF
		some_options --script --with --disk --seed --packages --print -v --share --mem --vram --cpus --gpu --timeout \
			--verbose --help-all
		;;
	check)
		cat <<-EOF
			usage: $qcu check [--gpu soft|cuda|auto] PROGRAM
			       $qcu check --all [--json] FOLDER|WHEEL|PROGRAM

			Says how PROGRAM was linked, for which GPUs, and whether it runs with qCUDA. Boots nothing.
			A name without a folder is looked for as qcu run does, and then in the current folder.
			With --all it follows the libraries that a program needs, and reads all files of a folder
			or of a Python wheel.

			Exit code: 0 it runs, 1 it does not, 2 cannot tell, 3 there is no CUDA in it.
		EOF
		;;
	all) usage_all ;;
	*) commands ;;
	esac
}

commands() {
	cat <<-EOF
		usage: $qcu run [options] PROGRAM [ARG...]    run PROGRAM in a guest
		       $qcu shell [options] [-c COMMAND]      a shell in a guest
		       $qcu vm [options] --script FILE        run a script in a guest, or boot a disk (--disk IMAGE)
		       $qcu check PROGRAM                     does it run with qCUDA?
		       $qcu top [options]                     what your VMs do with the GPU
		       $qcu trace [options] PROGRAM [ARG...]  what PROGRAM sends to the GPU, and when
		       $qcu doctor [options]                  what is wrong on this machine, and how to mend it
		       $qcu tune [options]                    measure which --map and --chunk to use
		       $qcu attach|detach [options] DOMAIN    give a VM of libvirt a qCUDA device, take it away

		Each command has a --help. --help-all prints all options of run, shell and vm, and the exit codes.
		--version prints the version.
	EOF
}

usage_all() {
	commands
	echo
	options
	cat <<-'EOF'

		Exit code: the program's own (128+N when signal N ended it), 126 or 127 when
		it cannot be started, 124 after --timeout, 2 when the launcher was called
		wrongly or lacks something, 125 when the VM or qcu-device failed, or output
		of a program that ended with 0 could not be written.
	EOF
}
