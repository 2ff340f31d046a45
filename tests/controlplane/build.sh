#!/usr/bin/env bash
# Build the real programs that the end-to-end tests run: etcd, kube-apiserver, kubectl, kube-scheduler and helm.
#
# They come as Go modules, pinned by the go.mod and go.sum files under go/, and land in one cache folder outside the
# repository. A second call finds them there and builds nothing. Progress goes to standard error; the last line on
# standard output is the folder. Nothing here fetches a ready-made binary, and nothing is installed system-wide.
#
# Exit status: 0 all there, 1 a build failed, 2 wrong usage, 3 Go is needed and not installed.
set -euo pipefail

readonly DEFAULT_PROGRAMS="etcd kube-apiserver kubectl kube-scheduler helm"
readonly ALL_PROGRAMS="$DEFAULT_PROGRAMS kube-controller-manager"
# Raise this when the way of building changes but the pinned versions do not: it is part of the cache key.
readonly RECIPE=1

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
readonly modules="$here/go"

usage() {
    cat <<TEXT
usage: build.sh [--only PROGRAM[,PROGRAM...]]... [--where]

  --only PROGRAM  build these instead of the default set ($DEFAULT_PROGRAMS);
                  kube-controller-manager is built only when named here
  --where         print the cache folder and build nothing (works without Go)

BAYPLAN_CONTROLPLANE_DIR names another folder than the one under \${XDG_CACHE_HOME:-~/.cache}.
TEXT
}

say() { printf '%s\n' "$*" >&2; }

digest() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -c1-12; }

# The version of a module as its go.mod pins it: pinned_version kubernetes k8s.io/kubernetes -> v1.36.4
pinned_version() { awk -v path="$2" '$1 == "require" && $2 == path {print $3} $1 == path {print $2}' "$modules/$1/go.mod" | head -n 1; }

version_key() {
    local sum
    sum="$({ echo "$RECIPE"; uname -sm; cat "$modules"/{etcd,helm,kubernetes}/go.mod "$modules"/{etcd,helm,kubernetes}/go.sum; } | digest)"
    echo "kubernetes-$KUBERNETES_VERSION-$sum"
}

KUBERNETES_VERSION="$(pinned_version kubernetes k8s.io/kubernetes)"
ETCD_VERSION="$(pinned_version etcd go.etcd.io/etcd/server/v3)"
HELM_VERSION="$(pinned_version helm helm.sh/helm/v3)"
KEY="$(version_key)"
readonly KUBERNETES_VERSION ETCD_VERSION HELM_VERSION KEY
folder="${BAYPLAN_CONTROLPLANE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/bayplan/controlplane/$KEY}"
readonly folder

# A program is current when its stamp holds this key; so a fixed BAYPLAN_CONTROLPLANE_DIR is rebuilt as well.
is_current() { [ -x "$folder/$1" ] && [ "$(cat "$folder/.$1.key" 2>/dev/null)" = "$KEY" ]; }

module_of() { case "$1" in etcd | helm) echo "$1" ;; *) echo kubernetes ;; esac; }

package_of() {
    case "$1" in
        etcd) echo go.etcd.io/etcd/server/v3 ;;
        helm) echo helm.sh/helm/v3/cmd/helm ;;
        *) echo "k8s.io/kubernetes/cmd/$1" ;;
    esac
}

version_of() {
    case "$1" in etcd) echo "$ETCD_VERSION" ;; helm) echo "$HELM_VERSION" ;; *) echo "$KUBERNETES_VERSION" ;; esac
}

# A Go build from a module knows no release, so the version that clients see is stamped in by the linker.
stamps_of() {
    case "$1" in
        etcd) ;;
        helm) echo "-X helm.sh/helm/v3/internal/version.version=$HELM_VERSION" ;;
        *) kubernetes_stamps k8s.io/component-base/version && kubernetes_stamps k8s.io/client-go/pkg/version ;;
    esac
}

kubernetes_stamps() {
    local major minor rest="${KUBERNETES_VERSION#v}"
    major="${rest%%.*}" rest="${rest#*.}" minor="${rest%%.*}"
    echo "-X $1.gitVersion=$KUBERNETES_VERSION -X $1.gitMajor=$major -X $1.gitMinor=$minor -X $1.gitTreeState=clean"
}

build_program() {
    local program="$1" scratch="$folder/.build.$1.$$"
    # 9 is the lock: a process that outlives this script must not keep it.
    if ! (cd "$modules/$(module_of "$program")" && GOWORK=off CGO_ENABLED=0 nice -n 10 go build -mod=readonly \
        -buildvcs=false -trimpath -p 2 -ldflags "-s -w $(stamps_of "$program" | tr '\n' ' ')" -o "$scratch" \
        "$(package_of "$program")") >&2 9>&-; then
        rm -f "$scratch"
        say "controlplane: building $program failed; the lines above are the Go tool's own"
        say "hint: it needs about 6 GiB of disk and a reachable Go module proxy (see \`go env GOPROXY\`)"
        return 1
    fi
    mv -f "$scratch" "$folder/$program"
    printf '%s\n' "$KEY" >"$folder/.$program.key"
}

require_go() {
    command -v go >/dev/null && return
    say "controlplane: Go is not installed, and these are still to be built:$1"
    say "hint: install Go 1.26 or newer (https://go.dev/dl), or point BAYPLAN_CONTROLPLANE_DIR at a folder that has them"
    exit 3
}

take_lock() {
    exec 9>"$folder/.lock"
    # Without flock (macOS) two builds at once only waste time: each program still appears by one rename.
    command -v flock >/dev/null || return 0
    flock --nonblock 9 || { say "controlplane: another build is running; waiting for it"; flock 9; }
    rm -f "$folder"/.build.*
}

missing_of() {
    local program
    for program in "$@"; do is_current "$program" || printf ' %s' "$program"; done
}

build_missing() {
    local missing program started number=0 total=$#
    missing="$(missing_of "$@")"
    [ -n "$missing" ] || return 0
    require_go "$missing"
    mkdir -p "$folder"
    take_lock
    for program in "$@"; do
        number=$((number + 1))
        if is_current "$program"; then
            say "[$number/$total] $program $(version_of "$program") is there"
            continue
        fi
        say "[$number/$total] $program $(version_of "$program") building"
        started=$SECONDS
        build_program "$program"
        say "[$number/$total] $program $(version_of "$program") built in $((SECONDS - started)) s"
    done
}

check_name() {
    case " $ALL_PROGRAMS " in
        *" $1 "*) ;;
        *) say "controlplane: unknown program \`$1\`; known: $ALL_PROGRAMS" && exit 2 ;;
    esac
}

main() {
    local selected="" only_where="" name
    while [ $# -gt 0 ]; do
        case "$1" in
            --only)
                [ $# -ge 2 ] || { usage >&2 && exit 2; }
                selected="$selected ${2//,/ }"
                shift
                ;;
            --where) only_where=yes ;;
            -h | --help) usage && exit 0 ;;
            *) usage >&2 && exit 2 ;;
        esac
        shift
    done
    for name in $selected; do check_name "$name"; done
    # Words are split on purpose: program names hold no spaces.
    # shellcheck disable=SC2086
    [ -n "$only_where" ] || build_missing ${selected:-$DEFAULT_PROGRAMS}
    echo "$folder"
}

main "$@"
