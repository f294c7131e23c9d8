// Ctrl-C: ends the program at once, or, where a verb has work to end in order, is only noted. A file that is half written goes with it.
#pragma once

namespace rooftile::cli {

/// A standard stream that the caller closed is /dev/null from now on: else the next file opened took its number, and messages went into it.
void open_standard_streams();
/// From now on SIGINT ends the program with exit code 130, and neither SIGPIPE nor SIGXFSZ ends it. SIGTERM and SIGHUP end it as ever, but for the
/// half-written file that goes first; where they were ignored they still are.
void handle_signals();

/// From now on the first SIGINT is noted for interrupted(); a second one ends the program.
void note_interrupts();
bool interrupted();

/// A file that whatever signal ends the program removes, while this lives. One at a time.
class UnfinishedFile {
  public:
    /// `path` outlives this.
    explicit UnfinishedFile(const char* path);
    ~UnfinishedFile();
    UnfinishedFile(const UnfinishedFile&) = delete;
    UnfinishedFile& operator=(const UnfinishedFile&) = delete;
};

}  // namespace rooftile::cli
