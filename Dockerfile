# ctxc in a container (docs/install.md):
#
#   docker build -t ctxc .
#   docker run --rm -v "$PWD":/work ctxc check MODEL
#
# The first stage makes the Debian package; the second is Debian with that package and nothing of the build.
FROM debian:bookworm AS build
WORKDIR /ctxc
# Alone, so that a change of the sources does not install everything anew.
COPY tools/setup.sh tools/common.sh tools/
RUN tools/setup.sh --package
COPY . .
RUN cmake --preset package && cmake --build --preset package
RUN cpack --config build-package/CPackConfig.cmake -B /packages

FROM debian:bookworm
COPY --from=build /packages/ctxc_*.deb /packages/
RUN apt-get update \
    && apt-get install -y --no-install-recommends /packages/ctxc_*.deb graphviz \
    && rm -rf /packages /var/lib/apt/lists/*
RUN useradd --create-home ctxc && install -d -o ctxc -g ctxc /home/ctxc/.cache
USER ctxc
WORKDIR /work
ENTRYPOINT ["ctxc"]
CMD ["--help"]
