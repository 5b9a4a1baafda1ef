# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # set by scripts/qcu
#
# qcu run --image: the root of the program is that of a container's image. scripts/qcu sources this file.
#
# An image is not trusted. skopeo and umoci read its layers and compare their digests. They make files of the user's
# own in a folder that only the user can enter, and no devices. Of its description, jq takes the environment, the
# program and the folder, and nothing else: docs/vm/containers.md.

image_source='' image_made='' image_folder=''

# A description may be this long, and may have this many variables, and words of a command.
image_longest=1048576 image_most=1024

# check_image: the options that belong to --image. Sets $image_source.
check_image() {
	local tool
	[ -n "$image" ] || return 0
	[ "$mode" != vm ] || die "--image belongs to the commands run and shell (try --help)"
	[ -z "$other_root" ] || die "--image does not go with --root: each is the program's root"
	[ ${#with[@]} -eq 0 ] || die "--with does not go with --image: the program finds what is in its root"
	[[ $image =~ ^[[:graph:]]+$ && $image != -* ]] || die "--image: this is no name of an image"
	case $image in
	oci:?* | oci-archive:?* | docker-archive:?* | containers-storage:?*) image_source=$image ;;
	*://*) die "--image $image: only what is on this machine can be used; podman pull fetches an image" ;;
	/* | ./* | ../*)
		[ -f "$image/index.json" ] || die "--image $image: there is no OCI image in this folder"
		image_source=oci:$image
		;;
	esac
	for tool in skopeo umoci jq; do
		command -v "$tool" >/dev/null || die "--image needs $tool: apt-get install skopeo umoci jq"
	done
	[ -n "$image_source" ] || ask_podman
}

# ask_podman: which image is meant by a name, podman knows.
ask_podman() {
	local id
	command -v podman >/dev/null || die "--image $image: there is no podman here; ./DIR is an OCI folder (try --help)"
	id=$(podman image inspect --format '{{.Id}}' -- "$image" 2>/dev/null) ||
		die "--image $image: podman has no such image; podman pull fetches one, podman images prints those that are there"
	[[ $id =~ ^[0-9a-f]{64}$ ]] || die "--image $image: podman gives no id for it"
	image_source=containers-storage:@$id
}

# no_image WHAT: the last line of the log says why a tool has failed.
no_image() {
	die "--image $image: $1 ($(tail -n 1 "$image_work/log" | tr -c '\n -~' '?' | sed 's/.*msg="*//' | cut -c 1-300))"
}

# describe SOURCE FILE: writes an image's description as it is stored. Its digest is the image's. All is read, because skopeo
# ends with an error if it cannot write.
describe() {
	skopeo --override-os linux --override-arch amd64 inspect --raw --config "$1" 2>"$image_work/log" |
		{ head -c $((image_longest + 1)) >"$2" && cat >/dev/null; } || no_image 'it cannot be read'
}

# find_image: prints the folder that has the image's files. It makes the folder, unless it is there from another time.
find_image() {
	local digest
	lock image
	image_work=$cache/images/.new
	rm -rf "$image_work"
	mkdir "$image_work" || die "--image: $cache/images cannot be written"
	describe "$image_source" "$image_work/config"
	digest=$(sha256sum <"$image_work/config")
	[ -d "$cache/images/${digest%% *}" ] || make_image
	rm -rf "$image_work"
	echo "$cache/images/${digest%% *}"
}

# make_image: sets $digest anew, because the image may have become another one meanwhile.
make_image() {
	local new=$image_work/new copy=oci:$image_work/oci:image options=(--quiet)
	need_space "$cache" 200
	mkdir "$new"
	# Layers of a docker-archive are not compressed, but skopeo 1.9 would write that they are.
	[[ $image_source == docker-archive:* ]] || options+=(--dest-oci-accept-uncompressed-layers)
	skopeo --override-os linux --override-arch amd64 copy "${options[@]}" \
		"$image_source" "$copy" >"$image_work/log" 2>&1 || no_image 'it cannot be copied'
	describe "$copy" "$image_work/config"
	digest=$(sha256sum <"$image_work/config")
	read_description "$image_work/config" "$new"
	# As an ordinary user: it changes no owners, and makes an empty file where the image has a device.
	umoci --log error raw unpack --rootless --image "$image_work/oci:image" "$new/root" >"$image_work/log" 2>&1 ||
		no_image 'it cannot be unpacked'
	# What the user cannot enter could not be removed either.
	find "$new/root" -type d ! -perm -700 -exec chmod u+rwx {} \; -o -type f -perm /6000 -exec chmod ug-s {} + ||
		die "--image $image: its files cannot be changed"
	mv -T "$new" "$cache/images/${digest%% *}" || die "--image $image: its files cannot be moved"
}

# image_words FILTER FILE: prints strings of a description, each with a NUL behind it. Fails if they are anything else,
# or too many.
image_words() {
	jq -j --argjson most "$image_most" "$1"' | if type == "array" and length <= $most and
		all(.[]; type == "string" and all(explode[]; . != 0)) then .[] + "\u0000" else error("no strings") end' \
		"$2" 2>/dev/null
}

# read_description FILE FOLDER: writes files with what an image may decide: its variables, its program, and in which folder
# that starts.
read_description() {
	local bad="--image $image: its description makes no sense"
	[ "$(stat -c %s "$1")" -le $image_longest ] || die "$bad: it is longer than $image_longest bytes"
	jq -e '.os == "linux" and .architecture == "amd64"' "$1" >/dev/null 2>&1 ||
		die "--image $image: it is not for Linux on x86-64"
	image_words '.config.Env // []' "$1" >"$2/environment" || die "$bad: Env"
	! grep -a -z -q -v -E '^[A-Za-z_][A-Za-z0-9_]*=' "$2/environment" || die "$bad: Env"
	image_words '(.config.Entrypoint // []) + (.config.Cmd // [])' "$1" >"$2/command" || die "$bad: Entrypoint or Cmd"
	image_words '[.config.WorkingDir // ""]' "$1" >"$2/folder" || die "$bad: WorkingDir"
	grep -a -z -q -E '^(/.*)?$' "$2/folder" || die "$bad: WorkingDir"
}

# use_image: the image's files become the program's root, and without a program on the command line its own one is
# run, in its own folder.
use_image() {
	make_cache
	mkdir -p -m 700 "$cache/images" || die "--image: $cache/images cannot be made"
	progress "preparing $image"
	image_made=$(find_image) || exit
	progress_end
	other_root=$image_made/root
	[ "$mode" = run ] && [ ${#args[@]} -eq 0 ] || return 0
	mapfile -t -d '' args <"$image_made/command"
	[ ${#args[@]} -gt 0 ] || die "--image $image: it names no program; name one on the command line"
	IFS= read -r -d '' image_folder <"$image_made/folder" || true
	image_folder=${image_folder:-/}
}

# check_image_fits: an image whose C library cannot load our libraries ends here, before the guest is booted.
check_image_fits() {
	local why
	[ -z "$use_device" ] || why=$("${confine%confine}fits" "$other_root" "${library%/*}" 2>&1) || {
		note "${why#qcuda: }"
		exit 126
	}
}

# image_environment: prints the variables of the program, each with a NUL behind it: the image's, and of the caller's those
# that do not belong to the caller's machine.
image_environment() {
	local name
	for name in HOME TERM "${!QCU_@}"; do
		[ -z "${!name:-}" ] || printf '%s=%s\0' "$name" "${!name}"
	done
	cat "$image_made/environment"
}
