"""Machines on which ctxc is configured, beside the one that has just run the demo; faults that they must find; and what is
said where something is missing. Data for newcomer.py."""

from dataclasses import dataclass


@dataclass
class Setting:
    """`prepare` runs as the user, then `command` in a clone at `place`, both in bash; `before` outside, with the root's
    folder in $root. Of the patterns of lines, `says` must be printed, and `says_not` must not."""

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
            command="tools/build.sh --configure && grep -q ctxc-openmpi build/build.ninja"),
    Setting("without ccache", prepare=REMOVE.format("ccache"), says=(without("ccache"),)),
    Setting("without graphviz", prepare=REMOVE.format("graphviz"), says=(without("graphviz"),)),
    Setting("a space and a letter beyond ASCII in the path", place="/srv/Meine Döschen/ctxc"),
    Setting("through a link", prepare="ln -s /srv/there /srv/linked; mkdir /srv/there", place="/srv/linked/ctxc"),
    Setting("part of another project", command=SUBPROJECT, says_not=("googletest", "GTest", "CMake Warning")),
    Setting("an archive without .git", command="rm -rf .git && tools/build.sh --configure"),
    Setting("a source tree that cannot be written",
            command="mount --bind -o ro . . 2>/dev/null || chattr -R +i .; CTXC_BUILD=/srv/build tools/build.sh --configure"),
    Setting("HOME unset", command="unset HOME; tools/build.sh --configure"),
    Setting("CDPATH set", command="cd tools; CDPATH=.:/srv ./build.sh --configure"),
    Setting("umask 077", prepare="umask 077"),
]

BREAKS = {
    "a list without MPI": ("as the demo left it", r"sed -i 's/^if(_kinds)/if(TRUE)/' test/shard/CMakeLists.txt"),
}

MESSAGES = []
