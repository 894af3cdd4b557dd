# PlatformIO runs this before it links: it picks the archive that was built for the processor and the float ABI of the
# project, src/<cpu>/<fpu>-<float ABI>/libspikelet.a or src/<cpu>/libspikelet.a, the layout of precompiled Arduino libraries.
import os
import sys

Import("env")  # noqa: F821 (SCons defines it)


def flag(name):
    """The value of the last -m<name>=... that the compiler gets; empty when there is none."""
    value = ""
    for flags in ("CCFLAGS", "CFLAGS", "CXXFLAGS", "LINKFLAGS"):
        for word in env.Flatten(env.get(flags, [])):  # noqa: F821
            for part in str(word).split():
                if part.startswith("-m%s=" % name):
                    value = part.split("=", 1)[1]
    return value


def archive_directory(source):
    cpu, fpu, abi = flag("cpu"), flag("fpu"), flag("float-abi") or "soft"
    if not cpu:
        sys.exit("Spikelet: no -mcpu among the compiler's flags: is this an Arm Cortex-M board?")
    cpu = cpu.split("+")[0]
    # Without hard float all archives can be called: those without the FPU's registers in calls are the fallback.
    for directory in (os.path.join(source, cpu, "%s-%s" % (fpu, abi)), os.path.join(source, cpu)):
        if os.path.isfile(os.path.join(directory, "libspikelet.a")):
            if abi == "hard" and not directory.endswith("-hard"):
                break
            return directory
    built = sorted(
        os.path.relpath(at, source) for at, _, files in os.walk(source) if "libspikelet.a" in files
    )
    sys.exit(
        "Spikelet: no archive for -mcpu=%s -mfpu=%s -mfloat-abi=%s, only for: %s"
        % (cpu, fpu or "none", abi, ", ".join(built))
    )


env.Append(LIBPATH=[archive_directory(os.path.join(os.getcwd(), "src"))], LIBS=["spikelet"])  # noqa: F821
