# A platform of PlatformIO: which compiler, with which flags.
import os

from SCons.Script import Default, DefaultEnvironment

env = DefaultEnvironment()
board = env.BoardConfig()
flags = ["-mthumb"] + board.get("build.flags").split()
tool = "arm-none-eabi-"
env.Replace(
    AR=tool + "ar", AS=tool + "gcc", CC=tool + "gcc", CXX=tool + "g++", LINK=tool + "gcc", RANLIB=tool + "ranlib",
    PROGSUFFIX=".elf", SIZETOOL=tool + "size",
)
env.Append(
    CCFLAGS=flags + ["-Os", "-ffunction-sections", "-fdata-sections"],
    CXXFLAGS=["-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"],
    LINKFLAGS=flags + ["-nostartfiles", "-Wl,--gc-sections", "-Wl,-z,noexecstack", "-T", board.get("build.map") + ".ld"],
    LIBPATH=[os.environ["SPIKELET_MAPS"]],
)
Default(env.BuildProgram())
