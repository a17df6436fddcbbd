#!/bin/sh
# SPDX-License-Identifier: MIT
# check_install.sh WAY SOURCE BUILD WORK: uses the library the way a stranger's project would.
# Environment: CC, CMAKE, GENERATOR. stage must have run before find_package and pkg_config.
set -eu

way=$1 source=$2 build=$3 work=$4
: "${CC:=cc}" "${CMAKE:=cmake}" "${GENERATOR:=Ninja}"
consumer=$source/tests/install
prefix=$work/moved

fail() {
    echo "install.$way: $*" >&2
    exit 1
}

fresh() {
    rm -rf "${work:?}/$1"
    mkdir -p "$work/$1"
    cd "$work/$1"
}

# The directory of the libraries differs between systems (lib, lib64, lib/<triplet>).
libdir() { dirname "$(find "$prefix" -name libnebula.a)"; }

# The headers of the modules that were built.
module_headers() {
    for module in record net scene gpu; do
        [ ! -f "$build/libnebula_$module.a" ] || (cd "$source/modules/$module/include" && find nebula -name '*.h')
    done
}

stage() {
    rm -rf "$work/stage" "$prefix"
    "$CMAKE" --install "$build" --prefix "$work/stage" >/dev/null
    mv "$work/stage" "$prefix"
    for file in $(cd "$source/include" && find nebula -name '*.h') $(module_headers); do
        [ -f "$prefix/include/$file" ] || fail "$file is not installed"
    done
    [ -f "$prefix/share/licenses/nebula/LICENSE" ] || fail "LICENSE is not installed"
    if grep -rlF -e "$source" -e "$work/stage" "$prefix" --include='*.cmake' --include='*.pc'; then
        fail "an installed file names a directory of the build"
    fi
}

find_package() {
    fresh find_package
    "$CMAKE" -G "$GENERATOR" -S "$consumer/find_package" -B . -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$CC" >/dev/null
    "$CMAKE" --build . >/dev/null
    ./use_default
    ./use_shared
    [ ! -f "$build/libnebula_record.a" ] || ./use_record
    [ ! -f "$build/libnebula_net.a" ] || ./use_net
    [ ! -f "$build/libnebula_scene.a" ] || ./use_scene
    [ ! -f "$build/libnebula_gpu.a" ] || ./use_gpu
    # A component that is not there is said so, and a module's library is not asked of those who do not use it.
    if "$CMAKE" -G "$GENERATOR" -S "$consumer/find_package" -B other -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$CC" \
        -DUSE_COMPONENT=nothing >/dev/null 2>&1; then
        fail "a component that does not exist is found"
    fi
}

pkg_config() {
    fresh pkg_config
    PKG_CONFIG_PATH=$(libdir)/pkgconfig
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046
    $CC "$consumer/main.c" -o use $(pkg-config --cflags --libs nebula)
    LD_LIBRARY_PATH=$(libdir) ./use
    # shellcheck disable=SC2046
    $CC "$consumer/main.c" -o use_static $(pkg-config --cflags nebula) "$(libdir)/libnebula.a" -pthread
    ./use_static
    if [ -f "$build/libnebula_record.a" ]; then
        # shellcheck disable=SC2046
        $CC "$consumer/main_record.c" -o use_record $(pkg-config --cflags --libs nebula-record)
        LD_LIBRARY_PATH=$(libdir) ./use_record
    fi
    if [ -f "$build/libnebula_net.a" ]; then
        # shellcheck disable=SC2046
        $CC "$consumer/main_net.c" -o use_net $(pkg-config --cflags --libs nebula-net)
        LD_LIBRARY_PATH=$(libdir) ./use_net
    fi
    if [ -f "$build/libnebula_scene.a" ]; then
        # shellcheck disable=SC2046
        $CC "$consumer/main_scene.c" -o use_scene $(pkg-config --cflags --libs nebula-scene)
        LD_LIBRARY_PATH=$(libdir) ./use_scene
    fi
    if [ -f "$build/libnebula_gpu.a" ]; then
        # shellcheck disable=SC2046
        $CC "$consumer/main_gpu.c" -o use_gpu $(pkg-config --cflags --libs nebula-gpu)
        LD_LIBRARY_PATH=$(libdir) ./use_gpu
    fi
    case $(pkg-config --cflags nebula) in
    *-W* | *-f* | *-std*) fail "the .pc file pushes flags: $(pkg-config --cflags nebula)" ;;
    esac
}

add_subdirectory() {
    fresh add_subdirectory
    "$CMAKE" -G "$GENERATOR" -S "$consumer/add_subdirectory" -B . -DNEBULA_SOURCE="$source" -DCMAKE_C_COMPILER="$CC" >/dev/null
    "$CMAKE" --build . >/dev/null
    ./use
    # The consumer's own file must be compiled with nothing but an include directory from us.
    command=$(grep '"command"' compile_commands.json | grep 'install/main\.c')
    case $command in
    *" -W"* | *" -f"* | *" -std"* | *" -D"*) fail "add_subdirectory pushes flags: $command" ;;
    esac
    built=$(find . -type f \( -name 'test_*' -o -name 'example_*' -o -name 'nebula-*' -o -name '*.so*' \) | grep -v '\.cmake$' || true)
    [ -z "$built" ] || fail "add_subdirectory built more than the library: $built"
}

plain_cc() {
    fresh plain_cc
    # No build system and no flags, as the README has it.
    $CC -I"$source/include" $(find "$source/src" -name '*.c') "$consumer/main.c" -o use
    ./use
    # The other side of the two compile-time switches must build too.
    $CC -std=c17 -O1 -Wall -Wextra -Werror -DNDEBUG -DNB_TRACE=0 -pthread -I"$source/include" $(find "$source/src" -name '*.c') "$consumer/main.c" -o use_bare
    ./use_bare
}

case $way in
stage | find_package | pkg_config | add_subdirectory | plain_cc) "$way" ;;
*) fail "unknown way" ;;
esac
