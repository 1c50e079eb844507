#!/usr/bin/env bash
# Runs the README's two commands as a newcomer would: in a clone of this repository's HEAD,
# in a bare Debian 12 with git, make and this host's Go, with empty Go caches, no package of
# podenv's and no container engine. Namespaces (mount, network, PID, cgroup, IPC, UTS) keep
# the engine that `make up` installs away from this host's.
#
#   hack/test-fresh.sh                                # make up, make test
#   hack/test-fresh.sh 'make up'                      # other commands, one after the other
#   WARM=1 hack/test-fresh.sh 'make test ONLY=image'  # read this host's Go caches
#
# It ends with the status of the first command that fails. Nothing stays but, after a
# failure, the logs in _output/fresh-logs.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
name=podenv-fresh-$$
cgroups=/sys/fs/cgroup

fail() {
	echo "test-fresh: $*" >&2
	exit 1
}

# outside prepares the root folder, the network and the cgroups, and starts inside.
outside() {
	[ "$(id -u)" = 0 ] || fail "run it as root: namespaces, mounts and cgroups need that"
	local tool missing=()
	for tool in git go ip mmdebstrap slirp4netns; do
		command -v "$tool" >/dev/null || missing+=("$tool")
	done
	[ ${#missing[@]} = 0 ] || fail "missing ${missing[*]}: \`apt-get install git iproute2 mmdebstrap slirp4netns\`; for Go see the README"

	mkdir -p "$repository/_output"
	dir=$(mktemp -d "$repository/_output/fresh-XXXXXX")
	root=$dir/root
	unshare=
	slirp=
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM

	echo "test-fresh: a bare Debian 12 in $root"
	apt-config dump --no-empty --format '%f "%v";%n' Acquire >"$dir/apt.conf"
	# shellcheck disable=SC2016 # apt reads these variables
	apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		grep ' bookworm' | sort -u >"$dir/sources.list" || fail "apt has no lists of Debian 12's packages: run \`apt-get update\`"
	mmdebstrap --quiet --variant=minbase --include=git,make,ca-certificates --aptopt="$dir/apt.conf" \
		bookworm "$root" "$dir/sources.list"
	cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" # with those that only this host trusts
	echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"          # slirp4netns's
	mkdir -p "$root/usr/local/go" "$root/home/go/pkg/mod" "$root/home/.cache/go-build"
	git -c advice.detachedHead=false clone --quiet --no-local "$repository" "$root/home/podenv"
	printf '%s\n' "${@@Q}" >"$root/home/commands"
	{
		for variable in GOPROXY GONOPROXY GOSUMDB GONOSUMDB GOPRIVATE; do
			echo "export $variable=$(printf %q "$(go env $variable)")"
		done
		export -p | grep -E '^declare -x (https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY|SERIES)=' || true
	} >"$root/home/environment"

	ip netns add "$name"
	slirp4netns --configure --disable-host-loopback --netns-type=path "/run/netns/$name" tap0 >"$dir/slirp.log" 2>&1 &
	slirp=$!
	local deadline=$((SECONDS + 30))
	until ip -n "$name" -4 address show tap0 2>/dev/null | grep -q inet; do
		[ $SECONDS -lt $deadline ] || fail "slirp4netns has not set up a network: $(tail -n 3 "$dir/slirp.log")"
		sleep 0.1
	done
	# In the background, so that a signal does not wait for its end.
	env --default-signal=INT,QUIT "$BASH" "${BASH_SOURCE[0]}" --enter-cgroups "$name" "$root" &
	unshare=$!
	local status=0
	wait "$unshare" || status=$?
	unshare=
	if [ $status != 0 ] && [ -d "$root/home/podenv/_output/logs" ]; then
		rm -rf "$repository/_output/fresh-logs"
		cp -r "$root/home/podenv/_output/logs" "$repository/_output/fresh-logs"
		echo "test-fresh: the logs are in $repository/_output/fresh-logs" >&2
	fi
	exit $status
}

# cleanup removes all that outside made. The end of the PID namespace's first process ends
# all others in it, and with the last one the mounts and the engine's networks. That process
# is unshare's child, and unshare may have got the signal, too: --kill-child then ends it.
cleanup() {
	trap '' INT TERM
	set +e
	if [ -n "$unshare" ]; then
		pkill -KILL --parent "$unshare"
		kill -KILL "$unshare"
		wait "$unshare"
	fi 2>/dev/null
	[ -z "$slirp" ] || kill "$slirp"
	[ ! -e "/run/netns/$name" ] || ip netns delete "$name"
	local cgroup deadline=$((SECONDS + 30))
	for cgroup in "$cgroups/$name" "$cgroups"/*/"$name"; do
		while [ -d "$cgroup" ] && ! find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null; do
			[ $SECONDS -lt $deadline ] || break
			sleep 0.1 # until the last process has ended
		done
		[ ! -d "$cgroup" ] || echo "test-fresh: processes are left in $cgroup" >&2
	done
	rm -rf --one-file-system "$dir"
}

# enter_cgroups moves this process to cgroups of its own, in which those of the containers
# will be, and on to namespaces of its own.
enter_cgroups() {
	local hierarchy file
	for hierarchy in "$cgroups" "$cgroups"/*; do
		if [ ! -f "$hierarchy/cgroup.procs" ] || [ -L "$hierarchy" ] || ! mountpoint -q "$hierarchy"; then
			continue
		fi
		mkdir "$hierarchy/$name"
		for file in cpuset.cpus cpuset.mems; do # version 1 does not inherit them
			[ ! -f "$hierarchy/$file" ] || cat "$hierarchy/$file" >"$hierarchy/$name/$file"
		done
		echo $$ >"$hierarchy/$name/cgroup.procs"
	done
	exec nsenter --net="/run/netns/$name" \
		unshare --mount --pid --cgroup --ipc --uts --fork --kill-child \
		"$BASH" "${BASH_SOURCE[0]}" --inside "$name" "$root"
}

# inside mounts what a machine has, and makes the new root this process's root.
inside() {
	mount --make-rprivate /
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount -t sysfs sysfs "$root/sys"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs tmpfs "$root/run"
	if [ -f "$cgroups/cgroup.procs" ]; then
		mount --bind "$cgroups/$name" "$root$cgroups"
	else
		mount -t tmpfs tmpfs "$root$cgroups"
		local entry to
		for entry in "$cgroups"/*; do
			to=$root$cgroups/${entry##*/}
			if [ -L "$entry" ]; then
				cp --no-dereference "$entry" "$to"
			elif [ -d "$entry/$name" ]; then
				mkdir "$to"
				mount --bind "$entry/$name" "$to"
			fi
		done
	fi
	mount --bind -o ro "$(go env GOROOT)" "$root/usr/local/go"
	if [ -n "${WARM:-}" ]; then
		over "$(go env GOMODCACHE)" "$root/home/go/pkg/mod"
		over "$(go env GOCACHE)" "$root/home/.cache/go-build"
	fi
	cd "$root"
	pivot_root . mnt
	umount --lazy /mnt
	hostname fresh
	# shellcheck disable=SC2016 # it is for the inner shell
	exec env --ignore-environment HOME=/home TERM=dumb \
		PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		"$BASH" -c '. /home/environment
		cd /home/podenv
		eval "commands=($(cat /home/commands))"
		for command in "${commands[@]}"; do
			echo "test-fresh: $command"
			SECONDS=0
			bash -c "$command"
			status=$?
			echo "test-fresh: $command: status $status after $((SECONDS / 60)) min $((SECONDS % 60)) s"
			[ $status = 0 ] || exit $status
		done'
}

# over mounts a folder of this host that is read, while what is written goes elsewhere.
over() {
	local scratch=$root.${2##*/}
	mkdir -p "$scratch/upper" "$scratch/work"
	mount -t overlay overlay -o "lowerdir=$1,upperdir=$scratch/upper,workdir=$scratch/work" "$2"
}

case ${1:-} in
--enter-cgroups | --inside)
	name=$2
	root=$3
	if [ "$1" = --inside ]; then inside; else enter_cgroups; fi
	;;
-*) fail "unknown flag $1: see the comment in ${BASH_SOURCE[0]}" ;;
'') outside 'make up' 'make test' ;;
*) outside "$@" ;;
esac
