//===- StandardStreams.h - input, output and messages of a program ---------===//
#ifndef CTXC_SUPPORT_STANDARDSTREAMS_H
#define CTXC_SUPPORT_STANDARDSTREAMS_H

namespace ctxc {

/// For main(), before anything is opened: opens /dev/null for each of the descriptors 0 to 2 that
/// is closed. Otherwise, the next file that is opened would become the output or the messages.
void openStandardStreams();

} // namespace ctxc

#endif // CTXC_SUPPORT_STANDARDSTREAMS_H
