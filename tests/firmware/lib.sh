# Shared by tests/device and tests/cost: tools, the archive we ship, emulators. Sourced by bash.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
mkdir -p "${CARGO_TARGET_DIR:-$root/target}"
target=$(cd "${CARGO_TARGET_DIR:-$root/target}" && pwd)
export CARGO_TARGET_DIR=$target # one for all workspaces, so that dependencies are built once

conformance=$root/tests/conformance
models=(d4h6 d16h32 d64h256 bsc-d16h32 mca-d16h32 gsc-gibbs bsc-gibbs ssmca-gibbs i16-d16h32 i8-d32h64 i8-mca-d16h32 nmf-d16h32 quiet-d4h6 subsets-d12h16 fixed-d16h32 fixed-d4h6 gmm-d16h64 own-d8h16 learned-d12h16)
# The Rust example has all of the above in its flash, where the smallest core has no room for one more of this size.
alone=i16-d64h256
models+=("$alone")
stream=stream-d2h6
# Models that only run as streams: sources in a room and in one channel. The smallest core has no room for the large ones.
large=(room-d2h2 room-d2h3 room-follows-d2h3 channel-d96h192)
small=(room-d2h4 room-d3h3 room-follows-d2h2 channel-d8h12 channel-d12h14)
signals=("${large[@]}" "${small[@]}")

# core, machine, triple, -icount shift (src/timer.rs says why)
cores=(
    'cortex-m4f  mps2-an386 thumbv7em-none-eabihf       10'
    'cortex-m7   mps2-an500 thumbv7em-none-eabihf       10'
    'cortex-m33  mps2-an505 thumbv8m.main-none-eabihf   10'
    'cortex-m0   microbit   thumbv6m-none-eabi          8'
    'riscv32imac virt       riscv32imac-unknown-none-elf 0'
)

die() {
    echo "$(basename "$0"): $*" >&2
    exit 2
}

# need_tools TRIPLE...: says everything that is missing at once, then stops.
need_tools() {
    local missing=() tool triple model
    for tool in cargo cc make jq qemu-system-arm qemu-system-riscv32 \
        arm-none-eabi-{gcc,ld,ar,nm,objcopy,objdump,size} riscv64-unknown-elf-{gcc,ld,ar,nm,objcopy,objdump,size}; do
        command -v "$tool" >/dev/null || missing+=("program $tool")
    done
    [ -e "$(arm-none-eabi-gcc -print-file-name=nosys.specs 2>/dev/null)" ] || missing+=("newlib for arm-none-eabi-gcc")
    for triple; do
        [ -d "$(rustc --print sysroot)/lib/rustlib/$triple" ] || missing+=("rust target $triple")
    done
    for model in "${models[@]}" "$stream" "${signals[@]}"; do
        [ -f "$conformance/$model.spk" ] || missing+=("file tests/conformance/$model.spk")
        [ -f "$conformance/$model.f32" ] || missing+=("file tests/conformance/$model.f32")
    done
    [ ${#missing[@]} = 0 ] || die "missing:$(printf '\n  %s' "${missing[@]}")"
}

# binutils TRIPLE: prefix of the tools that read its objects.
binutils() {
    case $1 in
    thumb*) echo arm-none-eabi- ;;
    riscv32*) echo riscv64-unknown-elf- ;;
    *) die "no binutils for $1" ;;
    esac
}

# build_staticlib TRIPLE [FEATURES]: fat LTO into one object; the panic handler calls a symbol that does not exist. FEATURES
# instead of the default ones.
build_staticlib() {
    cargo rustc --quiet --manifest-path "$root/Cargo.toml" -p spikelet-ffi --profile firmware --crate-type staticlib \
        --target "$1" ${2:+--no-default-features} --features "panic-gate${2:+,$2}"
}

# ship TRIPLE [ARCHIVE [OUT]]: of a Rust static library, keeps what the spk_ functions reach, and nothing that
# could clash with the firmware's own libc, libm, libgcc or Rust code. Fails if that includes a panic.
ship() {
    local triple=$1 archive=${2:-$target/$1/firmware/libspikelet_ffi.a} out=${3:-$target/ship/$1/libspikelet.a}
    local tool work object format=() roots
    tool=$(binutils "$triple")
    work=$(mktemp -d)
    # The other members are compiler_builtins: memcpy, expf, __aeabi_fadd ... all of them weak and visible.
    object=$("${tool}ar" t "$archive" | grep spikelet) || die "$archive: no object of ours"
    [ "$(wc -l <<<"$object")" = 1 ] || die "$archive: several objects, so LTO did not run: $object"
    (cd "$work" && "${tool}ar" x "$archive" "$object")

    # With garbage collection in a relocatable link the dead panic handler goes away here already, so users
    # need no --gc-sections for it; they do for their own unused functions, whose sections stay apart.
    roots=$("${tool}nm" -g --defined-only "$work/$object" | awk '$3 ~ /^spk_/ { print "-u", $3 }')
    [ -n "$roots" ] || die "$archive: exports no spk_ function"
    [[ $triple != riscv32* ]] || format=(-m elf32lriscv)
    # shellcheck disable=SC2086 # words on purpose
    "${tool}ld" "${format[@]}" -r --gc-sections $roots "$work/$object" -o "$work/spikelet.o"
    # .eh_frame would describe unwinding, which panic=abort never does.
    "${tool}objcopy" --strip-debug --remove-section=.comment --remove-section=.eh_frame --remove-section=.rela.eh_frame \
        --wildcard --keep-global-symbol='spk_*' "$work/spikelet.o"

    if "${tool}nm" -u "$work/spikelet.o" | grep -q spikelet_panic_path_survives; then
        echo "$triple: panics can be reached from:" >&2
        "${tool}objdump" -dr "$work/spikelet.o" | panic_callers >&2
        rm -r "$work"
        return 1
    fi
    mkdir -p "$(dirname "$out")"
    rm -f "$out"
    "${tool}ar" rcsD "$out" "$work/spikelet.o"
    rm -r "$work"
}

# panic_callers <objdump -dr: which function refers to which of core's panics.
panic_callers() {
    awk '/^[0-9a-f]+ <.*>:$/ { at = $2 }
         /R_[A-Z0-9_]+/ && /panic|_fail|unwrap_failed|expect_failed/ && !/survives/ { print "  " at, $NF }' | sort | uniq -c
}

# emulate MACHINE ELF [SHIFT]: runs a firmware; with SHIFT every instruction takes 2^SHIFT ns of virtual time.
# (QEMU writes what the firmware prints to its standard error.)
emulate() {
    local qemu=(qemu-system-arm -M "$1") icount=()
    [ "$1" != virt ] || qemu=(qemu-system-riscv32 -M virt -bios none)
    [ -z "${3-}" ] || icount=(-icount "shift=$3,align=off,sleep=off")
    # shellcheck disable=SC2086 # words on purpose
    timeout "${EMULATE_SECONDS:-60}" "${qemu[@]}" "${icount[@]}" ${QEMU_FLAGS-} -nographic -monitor none -serial none \
        -semihosting-config enable=on,target=native -kernel "$2" </dev/null 2>&1
}
