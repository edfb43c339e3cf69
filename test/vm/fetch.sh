#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Download and unpack what the VM is made of: a kernel with Soft-RoCE, the tools to pack it, and a
# newer rdma-core's libraries. Usage: fetch.sh [--userland-only] [--update]
#
# apt does it, from the mirror that this machine itself uses, over a root of its own: sources, lists
# and cache live in the cache folder, and apt checks signatures and hashes as it always does. Nothing
# of the machine's own apt is touched and no root is needed. What is there already is kept until
# --update asks for newer. The folder that is printed at the end is, by argument, the cache folder
# or the newer userland (the root of a file tree: usr/, etc/).

# shellcheck source-path=SCRIPTDIR
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

KERNEL_SUITE=${IBMR_VM_KERNEL_SUITE:-trixie-backports}
USERLAND_SUITE=${IBMR_VM_USERLAND_SUITE:-sid}
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

TOOLS=(busybox-static kmod libkmod2 libssl3 libzstd1 liblzma5 cpio iproute2 libmnl0 libbpf1 libelf1
	libcap2 libbsd0 libmd0 zlib1g jq libjq1 libonig5)
USERLAND=(libc6 libibverbs1 ibverbs-providers ibverbs-utils libnl-3-200 libnl-route-3-200)

# "URI CODENAME" of the archive that this machine's apt takes its own release from.
host_archive()
{
	local codename

	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && [ "$ID" = debian ] && echo "${VERSION_CODENAME:-}") || true
	[ -n "$codename" ] || cannot "this is not a Debian release: no archive to take a kernel from"
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk -v c="$codename" '$2 == c && $3 == "main" && !found { print $1, c; found = 1 }'
}

apt_setup()
{
	local archive uri codename

	command -v apt-get >/dev/null || cannot "there is no apt-get here"
	[ -r "$KEYRING" ] || cannot "$KEYRING is missing (package debian-archive-keyring)"
	archive=$(host_archive)
	[ -n "$archive" ] || cannot "apt's sources name no archive of this Debian release"
	read -r uri codename <<<"$archive"
	[ "${uri#cdrom:}" = "$uri" ] || cannot "apt's source is a CD-ROM"

	mkdir -p "$APT"/{sources,lists/partial,cache/archives/partial,none}
	: >"$APT/status"
	cat >"$APT/sources/vm.sources" <<-EOF
		Types: deb
		URIs: $uri
		Suites: $codename $KERNEL_SUITE $USERLAND_SUITE
		Components: main
		Architectures: amd64
		Signed-By: $KEYRING
	EOF
	cat >"$APT/apt.conf" <<-EOF
		Dir::Etc::SourceList "/dev/null";
		Dir::Etc::SourceParts "$APT/sources";
		Dir::Etc::Preferences "/dev/null";
		Dir::Etc::PreferencesParts "$APT/none";
		Dir::State "$APT";
		Dir::State::Lists "$APT/lists";
		Dir::State::status "$APT/status";
		Dir::Cache "$APT/cache";
		Dir::Log "$APT/none";
		APT::Sandbox::User "";
		APT::Architecture "amd64";
		APT::Architectures:: "amd64";
	EOF
	export APT_CONFIG=$APT/apt.conf
	HOST_SUITE=$codename
	apt-get -qq -o APT::Update::Error-Mode=any update >&2 ||
		cannot "apt could not read the archive's lists"
}

# The version of $1 in suite $2. Asked by suite, since the newest of a name may be another suite's.
version_in()
{
	apt-cache show "$1/$2" 2>/dev/null | sed -n 's/^Version: //p' | head -n 1
}

# The kernel's packages as NAME=VERSION, from the metapackage on along its linux-* dependencies:
# 6.x is one package, 7.x has its image and its modules in packages of their own.
kernel_packages()
{
	local queue=(linux-image-amd64) seen=' ' pkg version

	version=$(version_in linux-image-amd64 "$KERNEL_SUITE")
	[ -n "$version" ] || cannot "$KERNEL_SUITE has no linux-image-amd64"
	while [ ${#queue[@]} -gt 0 ]; do
		pkg=${queue[0]}
		queue=("${queue[@]:1}")
		[[ $seen != *" $pkg "* ]] || continue
		seen+="$pkg "
		echo "$pkg=$version"
		mapfile -t -O ${#queue[@]} queue < <(apt-cache show "$pkg=$version" |
			sed -n 's/^\(Pre-\)\?Depends: //p' | tr ',|' '\n' | sed 's/^ *//; s/ .*//' |
			grep -E '^linux-(image|base|binary|modules)-.*[0-9].*-amd64$')
	done
}

# modules.dep and the like, which a package's installation would have made. Kernels before the split
# have their folder under lib/, not usr/lib/.
index_modules()
{
	local root=$1 tools=$VM_CACHE/tools lib=lib/x86_64-linux-gnu

	if [ -d "$root/lib/modules" ]; then
		mkdir -p "$root/usr/lib"
		mv "$root/lib/modules" "$root/usr/lib/modules"
	fi
	(
		export LD_LIBRARY_PATH=$tools/usr/$lib:$tools/$lib
		exec -a depmod "$tools/bin/kmod" --basedir "$root/usr" "$(ls "$root/usr/lib/modules")"
	)
}

# unpack NAME PACKAGE[=VERSION|/SUITE]...: the file tree of these packages, complete or not there.
unpack()
{
	local into=$VM_CACHE/$1 new deb
	shift

	new=$(mktemp -d "$VM_CACHE/new.XXXXXX")
	mkdir "$new/debs" "$new/root"
	log "downloading the ${into##*/}: $*"
	(cd "$new/debs" && apt-get -qq download "$@" >&2) || cannot "apt could not download $*"
	for deb in "$new"/debs/*.deb; do
		dpkg-deb -x "$deb" "$new/root"
		# shellcheck disable=SC2016
		dpkg-deb -W --showformat='${Package} ${Version}\n' "$deb" >>"$new/root/.packages"
	done
	chmod 755 "$new/root"
	[ "${into##*/}" != kernel ] || index_modules "$new/root"
	rm -rf "$into"
	mv "$new/root" "$into"
}

main()
{
	local update=false userland_only=false arg

	for arg; do
		case $arg in
		--update) update=true ;;
		--userland-only) userland_only=true ;;
		*) die "usage: fetch.sh [--userland-only] [--update]" ;;
		esac
	done
	mkdir -p "$VM_CACHE"
	exec 9>"$VM_CACHE/lock"
	flock -w 600 9 || cannot "another fetch holds $VM_CACHE/lock"
	trap 'rm -rf "$VM_CACHE"/new.*' EXIT

	local parts=(userland) missing=() part packages
	$userland_only || parts=(tools kernel userland)
	for part in "${parts[@]}"; do
		if $update || [ ! -s "$VM_CACHE/$part/.packages" ]; then missing+=("$part"); fi
	done
	if [ ${#missing[@]} -gt 0 ]; then
		APT=$VM_CACHE/apt
		apt_setup
	fi
	for part in "${missing[@]}"; do
		case $part in
		tools) unpack tools "${TOOLS[@]/%//$HOST_SUITE}" ;;
		userland) unpack userland "${USERLAND[@]/%//$USERLAND_SUITE}" ;;
		kernel)
			packages=$(kernel_packages)
			mapfile -t packages <<<"$packages"
			unpack kernel "${packages[@]}"
			;;
		esac
	done
	if $userland_only; then echo "$VM_CACHE/userland"; else echo "$VM_CACHE"; fi
}

main "$@"
