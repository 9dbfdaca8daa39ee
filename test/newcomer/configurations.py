"""Machines on which ctxc is configured, beside the one that has just run the demo; faults that they must find; and what is
said where something is missing. Data for newcomer.py."""

from dataclasses import dataclass


@dataclass
class Setting:
    """As root, `prepare` runs and clones into `place`; then `before` runs outside, with the machine's folder in $root; then
    the user runs `command` in the clone. `says` are patterns of lines that it must print, `says_not` of others. The
    machine is one on which the demo has run, or an `empty` one."""

    name: str
    prepare: str = ""
    command: str = "tools/build.sh --configure"
    place: str = "/srv/ctxc"
    says: tuple = ()
    says_not: tuple = ("Traceback", "unbound variable")
    status: int = 0
    user: str = "root"
    network: bool = True
    before: str = ""
    empty: bool = False
    rare: bool = False  # tried every night, and not before each merge


def without(part):
    return rf"^== without {part}.*: .+ \(.+\)$"


INSTALL = "apt-get install -y -qq --no-install-recommends {} >/dev/null 2>&1"
REMOVE = "dpkg --purge --force-depends {} >/dev/null 2>&1"
SUBPROJECT = """mkdir /srv/above && cat >/srv/above/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(above C CXX)
add_subdirectory(/srv/ctxc ctxc)
add_executable(above above.cpp)
target_link_libraries(above PRIVATE CtxcXF)
END
echo 'int main() {}' >/srv/above/above.cpp
cmake -G Ninja -S /srv/above -B /srv/above/build -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22"""

CONFIGURATIONS = [
    Setting("as the demo left it", says=(without("MPI"), without("Python's headers"), without("Google Benchmark"))),
    Setting("MPICH", prepare=INSTALL.format("mpich libmpich-dev"), says_not=(without("MPI"),),
            command="tools/build.sh --configure && grep -q ctxc-mpich build/build.ninja"),
    Setting("OpenMPI", prepare=INSTALL.format("openmpi-bin libopenmpi-dev"), says_not=(without("MPI"),),
            command="tools/build.sh --configure && grep -q ctxc-openmpi build/build.ninja", rare=True),
    Setting("without ccache", prepare=REMOVE.format("ccache"), says=(without("ccache"),), rare=True),
    Setting("without graphviz", prepare=REMOVE.format("graphviz"), says=(without("graphviz"),), rare=True),
    Setting("a space and a letter beyond ASCII in the path", place="/srv/Meine Döschen/ctxc"),
    Setting("through a link", prepare="ln -s /srv/there /srv/linked; mkdir /srv/there", place="/srv/linked/ctxc", rare=True),
    Setting("part of another project", command=SUBPROJECT, says_not=("googletest", "GTest", "CMake Warning")),
    Setting("an archive without .git", command="rm -rf .git && tools/build.sh --configure", rare=True),
    Setting("a source tree that cannot be written", user="newcomer",
            command="CTXC_BUILD=~/build tools/build.sh --configure"),
    Setting("HOME unset", command="unset HOME; tools/build.sh --configure", rare=True),
    Setting("CDPATH set", command="cd /srv; CDPATH=/srv ctxc/tools/build.sh --configure", rare=True),
    Setting("umask 077", prepare="umask 077", command="umask 077; tools/build.sh --configure", rare=True),
]

# What each does to a clone, and the configuration that must fail for it.
BREAKS = {
    "a list that is empty without MPI": ("as the demo left it", "sed -i 's/^if(_kinds)/if(TRUE)/' test/shard/CMakeLists.txt"),
    "graphviz is required": ("without graphviz", "sed -i 's/find_program(CTXC_DOT dot)/find_program(CTXC_DOT dot REQUIRED)/' CMakeLists.txt"),
    "a path without quotes": ("a space and a letter beyond ASCII in the path", "sed -i 's/-S \"$root\"/-S $root/' tools/build.sh"),
    "the folder of another project": ("part of another project", "sed -i 's/PROJECT_SOURCE_DIR/CMAKE_SOURCE_DIR/g' cmake/CtxcLibrary.cmake"),
    "git is asked": ("an archive without .git",
                     "echo 'execute_process(COMMAND git rev-parse HEAD COMMAND_ERROR_IS_FATAL ANY)' >>CMakeLists.txt"),
    "the source tree is written": ("a source tree that cannot be written",
                                   "echo 'file(WRITE ${PROJECT_SOURCE_DIR}/new.h.inc \"\")' >>CMakeLists.txt"),
    "HOME is taken for granted": ("HOME unset", "sed -i '/^: .*HOME:=/d' tools/common.sh"),
    "cd prints": ("CDPATH set", "sed -i '/^unset CDPATH/d' tools/common.sh"),
}


def failing(name, message, command="tools/build.sh --configure", **options):
    return Setting(name, command=command, says=(message,), status=2, **options)


MESSAGES = [
    failing("no network", r"^setup.sh: error: Debian's packages could not be installed: .*is there a network\?.* are in /srv/ctxc/build/setup.log$",
            "tools/setup.sh", empty=True, network=False),
    failing("neither root nor sudo", r"^setup.sh: error: neither root nor sudo; have these Debian packages installed: clang-22 .*graphviz$",
            "CTXC_BUILD=~/build tools/setup.sh", empty=True, user="newcomer", before="rm $root/usr/bin/sudo"),
    failing("sudo refuses", r"^setup.sh: error: Debian's packages could not be installed: sudo: .*password.*; all .* are in .*/setup.log$",
            "CTXC_BUILD=~/build tools/setup.sh", empty=True, user="newcomer", before="rm $root/etc/sudoers.d/newcomer", rare=True),
    failing("another system", r"^setup.sh: error: this is no Debian: there is no apt-get to install .*; docs/install.md has other ways$",
            "tools/setup.sh", empty=True, before="rm $root/usr/bin/apt-get", rare=True),
    failing("an archive without LLVM 22", r"^setup.sh: error: .*'libmlir-22-dev' has no installation candidate \(docs/install.md says .*\); .*$",
            "tools/setup.sh", empty=True,
            before="printf 'Package: libmlir-22-dev\\nPin: release *\\nPin-Priority: -1\\n' >$root/etc/apt/preferences.d/none", rare=True),
    failing("a disk too small for the packages", r"^setup.sh: error: what is installed takes \d\.\d GB of disk, and /usr has 0\.\d GB$",
            "tools/setup.sh", empty=True,
            before="mount -t tmpfs -o size=500M none $root/mnt; cp -a $root/usr/. $root/mnt; mount --bind $root/mnt $root/usr"),
    failing("nothing installed", r"^build.sh: error: this machine has no cmake ninja clang-22 clang\+\+-22 ld.lld-22; tools/setup.sh .*$", empty=True),
    failing("a disk too small for the build", r"^build.sh: error: the build folder takes 0\.4 GB of disk, and /mnt/build has 0\.1 GB$",
            "CTXC_BUILD=/mnt/build tools/build.sh ctxc", before="mount -t tmpfs -o size=100M none $root/mnt", rare=True),
    failing("too little memory", r"^build.sh: error: a build takes 0\.6 GB of memory at least, and 0\.3 GB are free$", "tools/build.sh ctxc",
            before="sed 's/^MemAvailable.*/MemAvailable: 300000 kB/; s/^SwapFree.*/SwapFree: 0 kB/' /proc/meminfo >$root/tmp/meminfo; "
                   "mount --bind $root/tmp/meminfo $root/proc/meminfo", rare=True),
    failing("a build folder that cannot be written", r"^build.sh: error: the build folder /srv/ctxc/build cannot be written; CTXC_BUILD .*$",
            user="newcomer", rare=True),
    failing("an old CMake", r"^build.sh: error: cmake 3\.25 or newer is needed, and /usr/local/bin/cmake is 3\.22\.1$",
            before="printf '#!/bin/sh\\necho cmake version 3.22.1\\n' >$root/usr/local/bin/cmake; chmod +x $root/usr/local/bin/cmake", rare=True),
    failing("libraries that are missing", r"^build.sh: error: the configuration failed: this machine lacks MLIR 22.1 \(libmlir-22-dev .*\), libzip "
            r"\(libzip-dev\); .*tools/setup.sh installs all of them; .* are in /srv/ctxc/build/configure.log$",
            prepare=REMOVE.format("libmlir-22-dev libzip-dev")),
]
