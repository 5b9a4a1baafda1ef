# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # systemd_guest.sh, which sources this file, has set $log
#
# Containers in the guest of systemd.sh: podman, with the specification that the package's unit has written. A container
# that was not given the device has nothing of it. /share/images has the images (systemd.sh).

containers() {
	step "containers"
	# The unit has begun when the device came, and may not have ended yet.
	must "no specification for containers" systemctl start qcu-cdi.service
	[ -e /run/cdi/qcuda.yaml ] || bad "the unit has written no specification"
	image=$(podman pull -q oci:/share/images/image 2>$log) || { cat $log && bad "the image cannot be had"; }
	files_of_image >/var/tmp/image
	touch /var/tmp/pulled

	step "a container without the device"
	says "it has the device, or runs CUDA" 'libcudart' run sh -c 'ls -d /dev/qcuda /dev/nvidiactl /usr/lib/qcuda /usr/bin/nvidia-smi
		echo "$LD_AUDIT$NVIDIA_VISIBLE_DEVICES."; shared'
	! grep -e '^/' $log || bad "it has something of the device"
	grep -x '[.]' $log >/dev/null || { cat $log && bad "it has variables of ours"; }

	two_containers
	unchanged /var/lib/containers

	step "with the device, and a root that is read-only"
	must "CUDA in a container" run --read-only --device qcuda.org/gpu=all sh -c '
		for f in /usr/lib/qcuda/new /usr/lib/qcuda/libcuda.so.1 /usr/lib64/libcuda.so.1 /usr/bin/nvidia-smi; do
			! (: >>$f) 2>/dev/null || exit 50
		done
		id -u; shared && linked-in && stripped && /usr/bin/nvidia-smi -L'
	[ "$(grep -c '^verified: ' $log)" = 3 ] && grep '^GPU 0: ' $log >/dev/null && grep -x 12345 $log >/dev/null ||
		{ cat $log && bad "it says something else"; }

	step "rootless"
	must "ada has no image" as ada 'podman pull -q oci:/share/images/image >image'
	layers /home/ada/.local/share/containers >/var/tmp/ada
	says "who has no right to the device has it" 'Permission denied' as ada 'podman run --rm --network none \
		--device qcuda.org/gpu=all --entrypoint "[]" $(cat image) sh -c ": </dev/qcuda"'
	must "CUDA in ada's container" as ada 'podman run --rm --network none --group-add keep-groups \
		--device qcuda.org/gpu=0 --entrypoint "[]" $(cat image) linked-in'
	must "ada's image has changed" same_layers /home/ada/.local/share/containers /var/tmp/ada
	echo >>"$(find /home/ada/.local/share/containers -name sleeper)"
	says "a change would not be seen" sleeper same_layers /home/ada/.local/share/containers /var/tmp/ada
	[ ! -e /share/more ] || more_containers
	files_of_image >/var/tmp/image.after
	cmp /var/tmp/image /var/tmp/image.after || bad "the image has changed"
	step "containers are done"
}

# run ARG... COMMAND...: in a container of the image. Options come first, each in one word or with a value of its own.
run() {
	local options=()
	while [[ $1 == --* ]]; do
		options+=("$1")
		case $1 in
		--device | --runtime) options+=("$2") && shift ;;
		esac
		shift
	done
	podman run --rm --network none "${options[@]}" --entrypoint '[]' "$image" "$@"
}

files_of_image() {
	local folder
	folder=$(podman image mount "$image") || bad "the image cannot be mounted"
	(cd "$folder" && find . -type f -exec sha256sum {} + && find . -printf '%p %m %U %G %l\n') | sort
	podman image unmount "$image" >/dev/null
}

# layers FOLDER: all files of the layers of images there, with their contents. podman and docker have them in overlay folders, podman
# of an older kernel in vfs. Containers have layers of their own, which are gone with them.
layers() {
	local here=(-path '*/overlay*/*/diff/*' -o -path '*/vfs/dir/*')
	[ -n "$(find "$1" \( "${here[@]}" \) -type f -print -quit)" ] || bad "no layers of images in $1"
	(find "$1" \( "${here[@]}" \) -type f -exec sha256sum {} + && find "$1" \( "${here[@]}" \) -printf '%p %m %U %G %l %C@\n') | sort
}

same_layers() {
	layers "$1" >/var/tmp/layers
	diff "$2" /var/tmp/layers
}

# unchanged FOLDER: no file of podman's images there has changed since they were pulled. The kernel notes the time of each
# change; containers have layers of their own, which are gone with them.
unchanged() {
	find "$1"/storage/overlay/*/diff -mindepth 1 -cnewer /var/tmp/pulled >$log
	[ ! -s $log ] || { cat $log && bad "files of images have changed"; }
}

# two_containers: one has the device and waits, while a second one runs CuPy, which compiles kernels.
two_containers() {
	step "two containers at once"
	mkfifo /tmp/gate
	podman run -i --rm --network none --device qcuda.org/gpu=all --entrypoint '[]' "$image" sleeper </tmp/gate >/tmp/first &
	exec 8>/tmp/gate
	until grep ready /tmp/first >/dev/null; do
		kill -0 $! 2>/dev/null || bad "the first container has ended"
		sleep 0.5
	done
	if [ -e /share/python ]; then
		must "no nvidia-smi beside it" qcu-smi
		step "CuPy"
		must "CuPy" podman run --rm --network none --device qcuda.org/gpu=all --volume /mnt/cuda:/usr/local/cuda:ro \
			--env CUDA_PATH=/usr/local/cuda --env LD_LIBRARY_PATH=/usr/local/cuda/lib64 --env HOME=/tmp --tmpfs=/tmp:mode=1777 --workdir /data --entrypoint '[]' "$(cat /share/python)" python3 cupy_kernels.py
	else
		echo "guest: skipped: CuPy: $(tail -n 1 /share/no_python)"
		must "a second container" run --device qcuda.org/gpu=all linked-in
	fi
	exec 8>&-
	must "the first container" wait $!
	step "both have ended"
}

# What only the night tests.
more_containers() {
	local musl
	step "more containers"
	says "there is a GPU 7" 'unresolvable CDI devices qcuda.org/gpu=7' run --device qcuda.org/gpu=7 sh
	musl=$(podman pull -q oci:/share/images/musl)
	says "musl" 'image-needs-newer-glibc' podman run --rm --network none --device qcuda.org/gpu=all "$musl" sh
	says "musl with runc" 'C library musl' podman --runtime runc run --rm --network none --device qcuda.org/gpu=all "$musl" sh
	must "runc" podman --runtime runc run --rm --network none --device qcuda.org/gpu=all --entrypoint '[]' "$image" linked-in

	step "the other name"
	mkdir -p /etc/cdi
	echo 'kind: nvidia.com/gpu' >/etc/cdi/other.yaml
	says "another's devices are replaced" 'has devices nvidia.com/gpu already' qcu-cdi --nvidia
	rm /etc/cdi/other.yaml
	must "qcu-cdi" qcu-cdi --nvidia
	must "nvidia.com/gpu" run --device nvidia.com/gpu=all linked-in
	rm -r /etc/cdi/qcuda.yaml /etc/cdi/qcuda-nvidia.yaml
	rmdir /etc/cdi 2>/dev/null || true
	! command -v docker >/dev/null || docker_containers
}

# docker_containers: as the page says it for docker before version 28.
docker_containers() {
	local docker=(docker run --rm --network none)
	step "docker"
	# By itself, because on an emulated processor it takes longer than the 15 seconds for which dockerd waits.
	must "containerd" systemctl start containerd
	must "dockerd" systemctl start docker
	podman save -q "$image" | docker load -q >$log 2>&1 || { cat $log && bad "docker does not take the image"; }
	must "the image has no name" docker tag "$(docker images -q)" image
	layers /var/lib/docker >/var/tmp/docker
	docker+=(--entrypoint '')
	says "the device without CDI" 'could not select device driver "cdi"' "${docker[@]}" --device qcuda.org/gpu=all image linked-in
	mkdir -p /etc/docker
	echo '{"features": {"cdi": true}}' >/etc/docker/daemon.json
	must "dockerd with CDI" systemctl restart docker
	says "there is a GPU 7" 'unresolvable CDI devices qcuda.org/gpu=7' "${docker[@]}" --device qcuda.org/gpu=7 image sh
	says "docker without the device: it runs CUDA" 'libcudart' "${docker[@]}" image sh -c 'ls -d /dev/qcuda /dev/nvidiactl /usr/lib/qcuda
		echo "$LD_AUDIT$NVIDIA_VISIBLE_DEVICES."; shared'
	! grep -e '^/' $log || bad "docker without the device: it has something of it"
	grep -x '[.]' $log >/dev/null || { cat $log && bad "docker without the device: it has variables of ours"; }
	must "CUDA in docker" "${docker[@]}" --read-only --device qcuda.org/gpu=all image \
		sh -c 'shared && linked-in && stripped && /usr/bin/nvidia-smi -L'
	[ "$(grep -c '^verified: ' $log)" = 3 ] && grep '^GPU 0: ' $log >/dev/null || { cat $log && bad "docker: it says something else"; }
	must "docker's image has changed" same_layers /var/lib/docker /var/tmp/docker
	must "docker does not end" systemctl stop docker.socket docker containerd
	rm /etc/docker/daemon.json
}
